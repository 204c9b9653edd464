#pragma once

#include <vector>

#include "model/config.h"

namespace stagecraft {

// The angle, in radians per position, by which RoPE rotates each pair of a head:
//   inv_freq[i] = theta^(-2i / head_dim),  i = 0 .. head_dim / 2 - 1
// The frequencies are lower for models whose context was extended after training:
//   linear   every frequency is divided by factor
//   llama3   a fraction s of each frequency stays, and the rest is divided by factor:
//            s = (L / wavelength - low_freq_factor) / (high_freq_factor - low_freq_factor), at
//            least 0 and at most 1; wavelength = 2 pi / frequency, L = original_max_seq_len
//            (Llama 3.1; transformers, modeling_rope_utils.py)
//   yarn     the same, with an s that falls linearly in i from 1 to 0: from the pair that turns
//            beta_fast times in L positions to the one that turns beta_slow times. Pair i turns
//            n times in L positions if i = head_dim ln(L / (2 pi n)) / (2 ln theta) (Peng et al.
//            2023)
// A GGUF file has no name for llama3: it stores a divisor for each pair (RopeConfig::factors).
// Computed in f32 as in transformers: at position 400, the last bit of a frequency changes an angle
// by 1e-5, and the models were trained with those bits.
std::vector<float> rope_frequencies(const RopeConfig& rope, std::size_t head_dim);

}  // namespace stagecraft
