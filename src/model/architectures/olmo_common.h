#pragma once

#include "model/decoder_writer.h"

namespace stagecraft {

// Code that OLMo 2 and 3 share: a norm stands after each half of a layer instead of before it, and
// the whole rows of q and k are normed, all heads at once.
struct OlmoLayer {
  FrequenciesId rope = kNone;
  float scale = 1.0f;      // of attention
  std::size_t window = 0;  // 0: no window
  bool bias = false;
  ActivateStep::Function function = ActivateStep::Function::Silu;
};
void olmo_layer(DecoderWriter& w, std::size_t index, const OlmoLayer& layer);

}  // namespace stagecraft
