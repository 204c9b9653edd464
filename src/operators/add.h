#pragma once

#include "tensor/matrix.h"

namespace stagecraft {

// y[t][i] += x[t][i]: how a block adds its result to the residual stream.
//
//   x  [seq_len, dim]  read
//   y  [seq_len, dim]  read and written; must not overlap x
//
// May be called from several threads at once. The caller passes shapes that agree: ours checks it
// and throws Error if not (operators/check.h); the tests do not ask that of yours.
void add(MatrixView<const float> x, MatrixView<float> y);

}  // namespace stagecraft
