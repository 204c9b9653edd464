#pragma once

#include <span>

namespace stagecraft {

// GeGLU, the gated activation of Gemma (Shazeer 2020), with GELU in its tanh form (gelu_tanh.h):
//   y[i] = gelu_tanh(gate[i]) * up[i]
//
//   gate, up  [n]  read; n may be 0
//   y         [n]  written; may be gate or up itself, else must not overlap them
//
// Throws Error if sizes disagree.
void geglu(std::span<const float> gate, std::span<const float> up, std::span<float> y);

}  // namespace stagecraft
