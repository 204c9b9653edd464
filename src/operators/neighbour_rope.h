#pragma once

#include <span>

#include "tensor/matrix.h"

namespace stagecraft {

// Rotary position embedding in the form of its paper (Su et al. 2021, eq. 15): each pair that is
// rotated is two neighbouring columns. In operators/rope.h, a pair is one column of a head's first
// half and one of its second half.
//   angle      = (first_position + t) * inv_freq[i]
//   x[2i]      = x[2i] * cos(angle) - x[2i + 1] * sin(angle)
//   x[2i + 1]  = x[2i + 1] * cos(angle) + x[2i] * sin(angle)      (the old x[2i])
//
//   x               [seq_len, n_heads * head_dim]  rotated in place, every head alike
//   inv_freq        [head_dim / 2]                 radians per position
//   first_position  the position of row 0, counted from the start of the whole text
//
// Throws Error if inv_freq is empty or the number of columns is not a multiple of head_dim.
void neighbour_rope(MatrixView<float> x, std::span<const float> inv_freq,
                    std::size_t first_position);

}  // namespace stagecraft
