#pragma once

#include <span>

namespace stagecraft {

// SwiGLU, the gated activation of the feed-forward block (Shazeer 2020):
//   y[i] = silu(gate[i]) * up[i]
//
//   gate, up  [n]  read; n may be 0
//   y         [n]  written; may be gate or up itself, else must not overlap them
//
// May be called from several threads at once. The caller passes sizes that agree. The reference
// version checks this and throws Error (operators/check.h). Your version need not check it.
void swiglu(std::span<const float> gate, std::span<const float> up, std::span<float> y);

}  // namespace stagecraft
