#pragma once

#include "tensor/matrix.h"

namespace stagecraft {

// A weight as matmul_packed likes to read it. What stands in `data`, in which order and how padded,
// is between pack_b and matmul_packed: nobody else looks at it.
struct PackedMatrix {
  std::size_t rows = 0;  // n, as B has them
  std::size_t cols = 0;  // k, as B has them
  Matrix<float> data;
};

// Lays out a weight, once, for all the products to come.
//
//   b  [n, k]  read: as PyTorch's nn.Linear stores it, one row an output; n or k may be 0
//
// The result keeps nothing of b, which may be gone afterwards, and may be moved; any number of
// weights are packed at a time.
PackedMatrix pack_b(MatrixView<const float> b);

// Matrix product with a packed weight: C = A * B^T, c[m][n] = sum_k(a[m][k] * b[n][k]).
//
//   a  [m, k]  read
//   b  [n, k]  read: what pack_b made of B
//   c  [m, n]  written, never read; must not overlap a
//
// Any of m, n, k may be 0; with k = 0 the product is 0. The bits of c[m][n] depend only on row m of
// A and row n of B: one row alone gives what it gives among many. Both functions may be called from
// several threads at once. Throws Error if shapes disagree.
void matmul_packed(MatrixView<const float> a, const PackedMatrix& b, MatrixView<float> c);

}  // namespace stagecraft
