// Mistake: pack_b keeps where B lies, and B is gone by the time it is read.
#include "operators/matmul_packed.h"

#include <vector>

namespace stagecraft {
namespace {

std::vector<MatrixView<const float>>& weights() {
  static std::vector<MatrixView<const float>> all;
  return all;
}

}  // namespace

PackedMatrix pack_b(MatrixView<const float> b) {
  PackedMatrix packed{b.rows(), b.cols(), Matrix<float>(1, 1)};
  packed.data.data()[0] = static_cast<float>(weights().size());
  weights().push_back(b);
  return packed;
}

void matmul_packed(MatrixView<const float> a, const PackedMatrix& b, MatrixView<float> c) {
  const MatrixView<const float> weight = weights()[static_cast<std::size_t>(b.data.data()[0])];
  for (std::size_t m = 0; m < a.rows(); ++m) {
    for (std::size_t n = 0; n < b.rows; ++n) {
      float sum = 0.0f;
      for (std::size_t k = 0; k < b.cols; ++k) sum += a(m, k) * weight(n, k);
      c(m, n) = sum;
    }
  }
}

}  // namespace stagecraft
