#pragma once

#include <span>

namespace stagecraft {

// GELU (Hendrycks and Gimpel 2016):
//   exact_gelu(x) = x / 2 * (1 + erf(x / sqrt(2)))
//
//   x  [n]  read; n may be 0
//   y  [n]  written; may be x itself, else must not overlap it
//
// Throws Error if sizes disagree.
void exact_gelu(std::span<const float> x, std::span<float> y);

}  // namespace stagecraft
