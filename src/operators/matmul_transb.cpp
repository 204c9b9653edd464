// This gives away stage 3: it is our answer to stages/03-matmul-transb/matmul_transb.cpp.
#include "operators/matmul_transb.h"

#include <array>

#include "operators/check.h"

namespace stagecraft {
namespace {

// Sixteen partial sums instead of one. Each addition waits for the previous one in the same sum, so
// sixteen sums keep the adder busy. The compiler can keep them in vector registers without
// reordering any addition. And they lose fewer bits than one long sum.
float dot(std::span<const float> a, std::span<const float> b) {
  constexpr std::size_t kLanes = 16;
  std::array<float, kLanes> sums{};
  std::size_t k = 0;
  for (; k + kLanes <= a.size(); k += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) sums[lane] += a[k + lane] * b[k + lane];
  }
  for (std::size_t lane = 0; k < a.size(); ++k, ++lane) sums[lane] += a[k] * b[k];
  for (std::size_t half = kLanes / 2; half > 0; half /= 2) {
    for (std::size_t lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
  }
  return sums[0];
}

}  // namespace

void matmul_transb(float alpha, MatrixView<const float> a, MatrixView<const float> b, float beta,
                   MatrixView<float> c) {
  check_size("matmul_transb", "columns of b", a.cols(), b.cols());
  check_shape("matmul_transb", "c", a.rows(), b.rows(), c);
  // The outer loop runs over b, usually a weight that is too large for the cache: each of its rows
  // is read from memory only once.
  for (std::size_t n = 0; n < b.rows(); ++n) {
    for (std::size_t m = 0; m < a.rows(); ++m) {
      const float product = alpha * dot(a.row(m), b.row(n));
      c(m, n) = beta == 0.0f ? product : product + beta * c(m, n);
    }
  }
}

}  // namespace stagecraft
