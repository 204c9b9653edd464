#pragma once

#include <span>

namespace stagecraft {

// The gated activation of gpt-oss (OpenAI 2025): SwiGLU with limited inputs, and with u + 1 instead
// of u:
//   g = min(gate[i], limit)
//   u = min(max(up[i], -limit), limit)
//   y[i] = g / (1 + e^(-alpha * g)) * (u + 1)
//
//   gate, up  [n]  read; n may be 0
//   alpha     1.702 in gpt-oss
//   limit     at least 0
//   y         [n]  written; may be gate or up itself, else must not overlap them
//
// Throws Error if sizes disagree.
void clamped_swiglu(std::span<const float> gate, std::span<const float> up, float alpha,
                    float limit, std::span<float> y);

}  // namespace stagecraft
