#pragma once

#include <vector>

#include "model/config.h"

namespace stagecraft {

// The angle, in radians a position, by which RoPE turns each pair of a head:
//   inv_freq[i] = theta^(-2i / head_dim),  i = 0 .. head_dim / 2 - 1
// slowed down for models whose context was stretched after training:
//   linear   every frequency divided by factor
//   llama3   only wavelengths long against the original context are; in between, a smooth blend
//            (Llama 3.1; transformers, modeling_rope_utils.py)
// A GGUF file has no name for llama3's way: it brings the quotients, one for each pair (factors).
// Computed in f32 like there: at position 400 a last bit of a frequency is 1e-5 of an angle, and
// the models were trained with those bits.
std::vector<float> rope_frequencies(const RopeConfig& rope, std::size_t head_dim);

}  // namespace stagecraft
