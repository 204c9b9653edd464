#pragma once

#include <span>

namespace stagecraft {

// GeGLU, the gated activation of Gemma (Shazeer 2020), with GELU in its tanh form (Hendrycks and
// Gimpel 2016):
//   y[i]    = gelu(gate[i]) * up[i]
//   gelu(x) = x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))
//
//   gate, up  [n]  read; n may be 0
//   y         [n]  written; may be gate or up itself, else must not overlap them
//
// Throws Error if sizes disagree.
void geglu(std::span<const float> gate, std::span<const float> up, std::span<float> y);

}  // namespace stagecraft
