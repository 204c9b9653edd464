// Right: the standard library's vectors, a panel as wide as the machine's.
#include "operators/matmul_packed.h"

#include <algorithm>
#include <experimental/simd>

namespace stagecraft {
namespace {

using Lanes = std::experimental::native_simd<float>;
constexpr std::size_t kWidth = Lanes::size();

}  // namespace

PackedMatrix pack_b(MatrixView<const float> b) {
  const std::size_t panels = (b.rows() + kWidth - 1) / kWidth;
  PackedMatrix packed{b.rows(), b.cols(), Matrix<float>(panels, b.cols() * kWidth)};
  for (std::size_t n = 0; n < b.rows(); ++n) {
    float* lane = packed.data.data() + n / kWidth * b.cols() * kWidth + n % kWidth;
    for (std::size_t k = 0; k < b.cols(); ++k) lane[k * kWidth] = b(n, k);
  }
  return packed;
}

void matmul_packed(MatrixView<const float> a, const PackedMatrix& b, MatrixView<float> c) {
  for (std::size_t n = 0; n < b.rows; n += kWidth) {
    const float* panel = b.data.data() + n * b.cols;
    for (std::size_t m = 0; m < a.rows(); ++m) {
      Lanes sum = 0.0f;
      for (std::size_t k = 0; k < b.cols; ++k) {
        sum += a(m, k) * Lanes(panel + k * kWidth, std::experimental::element_aligned);
      }
      for (std::size_t lane = 0; lane < std::min(kWidth, b.rows - n); ++lane) {
        c(m, n + lane) = sum[lane];
      }
    }
  }
}

}  // namespace stagecraft
