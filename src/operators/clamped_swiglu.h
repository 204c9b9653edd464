#pragma once

#include <span>

namespace stagecraft {

// The gated activation of gpt-oss (OpenAI 2025): SwiGLU whose factors stay in a range, and where up
// counts 1 more:
//   g = min(gate[i], limit), u = up[i], or -limit or limit where it is beyond them
//   y[i] = g / (1 + e^(-alpha * g)) * (u + 1)
//
//   gate, up  [n]  read; n may be 0
//   y         [n]  written; may be gate or up itself, else must not overlap them
//
// Throws Error if sizes disagree.
void clamped_swiglu(std::span<const float> gate, std::span<const float> up, float alpha,
                    float limit, std::span<float> y);

}  // namespace stagecraft
