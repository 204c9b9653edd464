// Right: the intrinsics of AVX2, one row and one panel at a time; elsewhere plain loops.
#include "operators/matmul_packed.h"

#include <algorithm>
#include <array>

#ifdef __AVX2__
#include <immintrin.h>
#endif

namespace stagecraft {
namespace {

constexpr std::size_t kPanel = 16;

#ifdef __AVX2__
void row(const float* a, const float* panel, std::size_t size, float* sums) {
  __m256 low = _mm256_setzero_ps();
  __m256 high = _mm256_setzero_ps();
  for (std::size_t k = 0; k < size; ++k) {
    const __m256 x = _mm256_broadcast_ss(a + k);
    low = _mm256_fmadd_ps(x, _mm256_loadu_ps(panel + k * kPanel), low);
    high = _mm256_fmadd_ps(x, _mm256_loadu_ps(panel + k * kPanel + 8), high);
  }
  _mm256_storeu_ps(sums, low);
  _mm256_storeu_ps(sums + 8, high);
}
#else
void row(const float* a, const float* panel, std::size_t size, float* sums) {
  std::fill_n(sums, kPanel, 0.0f);
  for (std::size_t k = 0; k < size; ++k) {
    for (std::size_t lane = 0; lane < kPanel; ++lane) sums[lane] += a[k] * panel[k * kPanel + lane];
  }
}
#endif

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
  for (std::size_t n = 0; n < b.rows; n += kPanel) {
    for (std::size_t m = 0; m < a.rows(); ++m) {
      std::array<float, kPanel> sums;
      row(a.row(m).data(), b.data.data() + n * b.cols, b.cols, sums.data());
      std::copy_n(sums.begin(), std::min(kPanel, b.rows - n), c.row(m).begin() + n);
    }
  }
}

}  // namespace stagecraft
