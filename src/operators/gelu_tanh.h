#pragma once

#include <span>

namespace stagecraft {

// GELU in its tanh form (Hendrycks and Gimpel 2016), which differs from exact_gelu by up to 0.0005:
//   gelu_tanh(x) = x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))
float gelu_tanh(float x);

// y[i] = gelu_tanh(x[i]):
//   x  [n]  read; n may be 0
//   y  [n]  written; may be x itself, else must not overlap it
//
// Throws Error if sizes disagree.
void gelu_tanh(std::span<const float> x, std::span<float> y);

}  // namespace stagecraft
