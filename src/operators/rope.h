#pragma once

#include <span>

#include "tensor/matrix.h"

namespace stagecraft {

// Rotary position embedding (Su et al. 2021) in the half-split form of Hugging Face checkpoints:
// element i of a head's first half and element i of its second half are a point in the plane, and
// the point is rotated by an angle that grows with the position:
//   angle         = (first_position + t) * inv_freq[i]
//   x[i]          = x[i] * cos(angle) - x[i + half] * sin(angle)
//   x[i + half]   = x[i + half] * cos(angle) + x[i] * sin(angle)      (the old x[i])
//
//   x               [seq_len, n_heads * head_dim], rotated in place, every head alike; seq_len may
//                   be 0
//   inv_freq        [head_dim / 2]   radians per position (model/rope_frequencies.h)
//   first_position  the position of row 0, counted from the start of the whole text. It equals the
//                   number of tokens in the cache.
//
// May be called from several threads at once. The number of columns of x is a multiple of head_dim.
// The reference version checks this and throws Error. Your version need not check it.
void rope(MatrixView<float> x, std::span<const float> inv_freq, std::size_t first_position);

}  // namespace stagecraft
