// Right: the loops of the textbook, as slow as they are. mistakes.json holds an edit of it.
#include "operators/matmul_packed.h"

#include <algorithm>

namespace stagecraft {

PackedMatrix pack_b(MatrixView<const float> b) {
  PackedMatrix packed{b.rows(), b.cols(), Matrix<float>(b.rows(), b.cols())};
  for (std::size_t n = 0; n < b.rows(); ++n) {
    std::ranges::copy(b.row(n), packed.data.view().row(n).begin());
  }
  return packed;
}

void matmul_packed(MatrixView<const float> a, const PackedMatrix& b, MatrixView<float> c) {
  const auto rows = b.data.view();
  for (std::size_t m = 0; m < a.rows(); ++m) {
    for (std::size_t n = 0; n < b.rows; ++n) {
      float sum = 0.0f;
      for (std::size_t k = 0; k < b.cols; ++k) sum += a(m, k) * rows(n, k);
      c(m, n) = sum;
    }
  }
}

}  // namespace stagecraft
