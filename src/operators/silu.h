#pragma once

#include <span>

namespace stagecraft {

// SiLU, also called swish (Elfwing et al. 2017):
//   y[i] = x[i] / (1 + exp(-x[i]))
//
//   x  [n]  read; n may be 0
//   y  [n]  written; may be x itself, else must not overlap it
//
// For a finite x far below 0 the result is 0 (or -0), never NaN. May be called from several threads
// at once. The caller passes sizes that agree. The reference version checks this and throws Error
// (operators/check.h). Your version need not check it.
void silu(std::span<const float> x, std::span<float> y);

}  // namespace stagecraft
