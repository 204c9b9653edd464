#pragma once

#include <span>

namespace stagecraft {

// GELU (Hendrycks and Gimpel 2016), and the same in its tanh form, which differs by up to 0.0005:
//   exact_gelu(x) = x / 2 * (1 + erf(x / sqrt(2)))
//   gelu_tanh(x)  = x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))
//
//   x  [n]  read; n may be 0
//   y  [n]  written; may be x itself, else must not overlap it
//
// Throws Error if sizes disagree.
void exact_gelu(std::span<const float> x, std::span<float> y);
void gelu_tanh(std::span<const float> x, std::span<float> y);

}  // namespace stagecraft
