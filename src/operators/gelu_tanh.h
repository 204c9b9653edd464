#pragma once

#include <span>

namespace stagecraft {

// GELU in its tanh form (Hendrycks and Gimpel 2016), which differs from exact_gelu by up to 0.0005:
//   y[i] = x[i] / 2 * (1 + tanh(sqrt(2 / pi) * (x[i] + 0.044715 * x[i]^3)))
//
//   x  [n]  read; n may be 0
//   y  [n]  written; may be x itself, else must not overlap it
//
// Throws Error if sizes disagree.
void gelu_tanh(std::span<const float> x, std::span<float> y);

}  // namespace stagecraft
