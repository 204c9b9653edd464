// Right: two threads, whose time counts twice.
#include "operators/matmul_packed.h"

#include <algorithm>
#include <thread>

namespace stagecraft {
namespace {

void columns(MatrixView<const float> a, const PackedMatrix& b, MatrixView<float> c,
             std::size_t first, std::size_t end) {
  for (std::size_t n = first; n < end; ++n) {
    const auto row = b.data.view().row(n);
    for (std::size_t m = 0; m < a.rows(); ++m) {
      float sum = 0.0f;
      for (std::size_t k = 0; k < b.cols; ++k) sum += a(m, k) * row[k];
      c(m, n) = sum;
    }
  }
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
  if (a.rows() * b.rows < 1000) {
    columns(a, b, c, 0, b.rows);
    return;
  }
  std::thread other(columns, a, std::cref(b), c, 0, b.rows / 2);
  columns(a, b, c, b.rows / 2, b.rows);
  other.join();
}

}  // namespace stagecraft
