// Right: the first step of the ladder, eight k at a time, in loops that the compiler vectorises.
#include "operators/matmul_packed.h"

#include <algorithm>
#include <array>

namespace stagecraft {
namespace {

float dot(const float* a, const float* b, std::size_t size) {
  std::array<float, 8> sums{};
  std::size_t k = 0;
  for (; k + 8 <= size; k += 8) {
    for (std::size_t lane = 0; lane < 8; ++lane) sums[lane] += a[k + lane] * b[k + lane];
  }
  float sum = 0.0f;
  for (const float part : sums) sum += part;
  for (; k < size; ++k) sum += a[k] * b[k];
  return sum;
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
  for (std::size_t n = 0; n < b.rows; ++n) {
    for (std::size_t m = 0; m < a.rows(); ++m) {
      c(m, n) = dot(a.row(m).data(), b.data.data() + n * b.cols, b.cols);
    }
  }
}

}  // namespace stagecraft
