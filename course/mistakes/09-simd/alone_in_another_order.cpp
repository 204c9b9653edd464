// Mistake: a row alone is added up in another order than many rows.
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

float one_by_one(const float* a, const float* b, std::size_t size) {
  float sum = 0.0f;
  for (std::size_t k = 0; k < size; ++k) sum += a[k] * b[k];
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
      const float* row = b.data.data() + n * b.cols;
      c(m, n) = a.rows() == 1 ? one_by_one(a.row(m).data(), row, b.cols)
                              : dot(a.row(m).data(), row, b.cols);
    }
  }
}

}  // namespace stagecraft
