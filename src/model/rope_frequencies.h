#pragma once

#include <vector>

#include "model/config.h"

namespace stagecraft {

// The angle, in radians per position, by which RoPE rotates each pair of a head:
//   inv_freq[i] = theta^(-2i / head_dim),  i = 0 .. head_dim / 2 - 1
// The frequencies are lower for models whose context was extended after training:
//   linear   every frequency is divided by factor
//   llama3   only frequencies whose wavelength is long compared with the original context are
//            divided; in between, a smooth blend (Llama 3.1; transformers, modeling_rope_utils.py)
//   yarn     the same idea with a blend that is linear in i (Peng et al. 2023)
// A GGUF file has no name for llama3: it stores a divisor for each pair (RopeConfig::factors).
// Computed in f32 as in transformers: at position 400, the last bit of a frequency changes an angle
// by 1e-5, and the models were trained with those bits.
std::vector<float> rope_frequencies(const RopeConfig& rope, std::size_t head_dim);

}  // namespace stagecraft
