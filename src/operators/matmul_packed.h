#pragma once

#include "tensor/matrix.h"

namespace stagecraft {

// A weight in the layout that matmul_packed reads. The order and the padding of the numbers in
// `data` are up to pack_b and matmul_packed: no other code reads them.
struct PackedMatrix {
  std::size_t rows = 0;  // n, the rows of B
  std::size_t cols = 0;  // k, the columns of B
  Matrix<float> data;
};

// Packs a weight once, for all later products.
//
//   b  [n, k]  read: as PyTorch's nn.Linear stores it, one row per output; n or k may be 0
//
// The result is a copy: the memory of b may be freed afterwards, and the result may be moved.
// Several weights may be packed at the same time.
PackedMatrix pack_b(MatrixView<const float> b);

// Matrix product with a packed weight: C = A * B^T, c[m][n] = sum_k(a[m][k] * b[n][k]).
//
//   a  [m, k]  read
//   b  [n, k]  read: the result of pack_b for B
//   c  [m, n]  written, never read; must not overlap a
//
// Any of m, n, k may be 0; with k = 0 the product is 0. The bits of c[m][n] depend only on row m of
// A and row n of B: a row of A gives the same bits alone as among other rows. Both functions may be
// called from several threads at once. The caller passes shapes that agree. The reference version
// checks this and throws Error (operators/check.h). Your version need not check it.
void matmul_packed(MatrixView<const float> a, const PackedMatrix& b, MatrixView<float> c);

}  // namespace stagecraft
