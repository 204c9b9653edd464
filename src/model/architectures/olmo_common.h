#pragma once

#include "model/architectures/decoder_common.h"

namespace stagecraft {

// What OLMo 2 and 3 share: norms stand after each half of a layer, not before it, and whole rows of
// q and k are normed, all heads at once.
struct OlmoLayer {
  FrequenciesId rope = kNone;
  float scale = 1.0f;      // of attention
  std::size_t window = 0;  // 0: none
  bool bias = false;
  ActivateStep::Function function = ActivateStep::Function::Silu;
};
// Of attention: 1 / sqrt(head size), times the factor by which yarn multiplies both q and k.
float olmo_attention_scale(const DecoderSizes& sizes, const RopeConfig& rope);
void olmo_layer(DecoderWriter& w, std::size_t index, const OlmoLayer& layer);

}  // namespace stagecraft
