// Mistake: k goes in steps of eight vectors, and what remains is left out, in panels.
#include "operators/matmul_packed.h"

#include <algorithm>

namespace stagecraft {
namespace {

constexpr std::size_t kPanel = 16;

}  // namespace

PackedMatrix pack_b(MatrixView<const float> b) {
  const std::size_t panels = (b.rows() + kPanel - 1) / kPanel;
  PackedMatrix packed{b.rows(), b.cols(), Matrix<float>(panels, b.cols() * kPanel)};
  for (std::size_t n = 0; n < b.rows(); ++n) {
    float* lane = packed.data.data() + n / kPanel * b.cols() * kPanel + n % kPanel;
    for (std::size_t k = 0; k < b.cols(); ++k) lane[k * kPanel] = b(n, k);
  }
  return packed;
}

void matmul_packed(MatrixView<const float> a, const PackedMatrix& b, MatrixView<float> c) {
  for (std::size_t m = 0; m < a.rows(); ++m) {
    for (std::size_t n = 0; n < b.rows; ++n) {
      const float* lane = b.data.data() + n / kPanel * b.cols * kPanel + n % kPanel;
      float sum = 0.0f;
      for (std::size_t k = 0; k < b.cols / 8 * 8; ++k) sum += a(m, k) * lane[k * kPanel];
      c(m, n) = sum;
    }
  }
}

}  // namespace stagecraft
