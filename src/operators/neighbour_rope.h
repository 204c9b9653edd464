#pragma once

#include <span>

#include "tensor/matrix.h"

namespace stagecraft {

// Rotary position embedding in the form of its paper (Su et al. 2021, eq. 15): the pair that is
// rotated is two neighbouring columns, where operators/rope.h pairs the two halves of a head.
//   angle      = (first_position + t) * inv_freq[i]
//   x[2i]      = x[2i] * cos(angle) - x[2i + 1] * sin(angle)
//   x[2i + 1]  = x[2i + 1] * cos(angle) + x[2i] * sin(angle)      (the old x[2i])
//
//   x               [seq_len, n_heads * head_dim]  rotated in place, every head alike
//   inv_freq        [head_dim / 2]                 radians per position
//   first_position  of row 0, counted from the start of the whole text
//
// Throws Error if the columns are no multiple of head_dim.
void neighbour_rope(MatrixView<float> x, std::span<const float> inv_freq,
                    std::size_t first_position);

}  // namespace stagecraft
