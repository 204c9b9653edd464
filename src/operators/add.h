#pragma once

#include "tensor/matrix.h"

namespace stagecraft {

// y[t][i] += x[t][i]: how a block adds its result to the residual stream.
//
//   x  [seq_len, dim]  read; seq_len may be 0
//   y  [seq_len, dim]  read and written; must not overlap x
//
// May be called from several threads at once. The caller passes shapes that agree. The reference
// version checks this and throws Error (operators/check.h). Your version need not check it.
void add(MatrixView<const float> x, MatrixView<float> y);

}  // namespace stagecraft
