#pragma once

#include <span>

namespace stagecraft {

// Softmax of one row:
//   y[i] = exp(x[i] - max(x)) / sum_j(exp(x[j] - max(x)))
//
//   x  [n]  read; n may be 0
//   y  [n]  written; may be x itself, else must not overlap it
//
// Mathematically, subtracting the maximum changes nothing; in floating point, it keeps exp() from
// overflowing. -infinity gives 0. If all of x is -infinity, the result is NaN, as in PyTorch. May
// be called from several threads at once. The caller passes sizes that agree. The reference version
// checks this and throws Error (operators/check.h). Your version need not check it.
void softmax(std::span<const float> x, std::span<float> y);

}  // namespace stagecraft
