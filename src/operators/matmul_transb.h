#pragma once

#include "tensor/matrix.h"

namespace stagecraft {

// Matrix product with the second factor transposed, by the rules of BLAS's sgemm:
//   C = alpha * A * B^T + beta * C
//   c[m][n] = alpha * sum_k(a[m][k] * b[n][k]) + beta * c[m][n]
//
//   a  [m, k]  read
//   b  [n, k]  read: a weight as PyTorch's nn.Linear stores it, one row per output
//   c  [m, n]  read unless beta is 0, written; must not overlap a or b
//
// With beta = 0, C is never read, so NaN in it does no harm. Any of m, n, k may be 0; with k = 0
// the product is 0. The bits of c[m][n] depend only on row m of A and row n of B: a row of A gives
// the same bits alone as among other rows. May be called from several threads at once. The engine
// does so: each thread writes different columns of C. The caller passes shapes that agree. The
// reference version checks this and throws Error (operators/check.h). Your version need not check
// it.
void matmul_transb(float alpha, MatrixView<const float> a, MatrixView<const float> b, float beta,
                   MatrixView<float> c);

}  // namespace stagecraft
