// Right: the third step of the ladder, 3 x 4 dot products at a time, B as it was.
#include "operators/matmul_packed.h"

#include <algorithm>

namespace stagecraft {
namespace {

using Lanes [[gnu::vector_size(32), gnu::aligned(4), gnu::may_alias]] = float;

template <std::size_t Rows, std::size_t Cols>
void tile(MatrixView<const float> a, const float* b, MatrixView<float> c) {
  const std::size_t size = a.cols();
  const std::size_t end = size - size % 8;
  Lanes sums[Rows][Cols] = {};
  for (std::size_t k = 0; k < end; k += 8) {
    for (std::size_t m = 0; m < Rows; ++m) {
      const Lanes& x = *reinterpret_cast<const Lanes*>(a.data() + m * a.stride() + k);
      for (std::size_t n = 0; n < Cols; ++n) {
        sums[m][n] += x * *reinterpret_cast<const Lanes*>(b + n * size + k);
      }
    }
  }
  for (std::size_t m = 0; m < Rows; ++m) {
    for (std::size_t n = 0; n < Cols; ++n) {
      float sum = 0.0f;
      for (std::size_t lane = 0; lane < 8; ++lane) sum += sums[m][n][lane];
      for (std::size_t k = end; k < size; ++k) sum += a(m, k) * b[n * size + k];
      c(m, n) = sum;
    }
  }
}

template <std::size_t Cols>
void columns(MatrixView<const float> a, const float* b, MatrixView<float> c) {
  std::size_t m = 0;
  for (; m + 3 <= a.rows(); m += 3) tile<3, Cols>(a.row_range(m, 3), b, c.row_range(m, 3));
  for (; m < a.rows(); ++m) tile<1, Cols>(a.row_range(m, 1), b, c.row_range(m, 1));
}

}  // namespace

PackedMatrix pack_b(MatrixView<const float> b) {
  PackedMatrix packed{b.rows(), b.cols(), Matrix<float>(b.rows(), b.cols())};
  for (std::size_t n = 0; n < b.rows(); ++n) {
    std::ranges::copy(b.row(n), packed.data.view().row(n).begin());
  }
  return packed;
}

void matmul_packed(MatrixView<const float> a, const PackedMatrix& b, MatrixView<float> c) {
  std::size_t n = 0;
  for (; n + 4 <= b.rows; n += 4) columns<4>(a, b.data.data() + n * b.cols, c.col_range(n, 4));
  for (; n < b.rows; ++n) columns<1>(a, b.data.data() + n * b.cols, c.col_range(n, 1));
}

}  // namespace stagecraft
