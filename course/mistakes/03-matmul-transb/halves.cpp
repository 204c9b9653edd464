// Right: a sum of halves, which are sums of halves.
#include "operators/matmul_transb.h"

#include <span>

namespace stagecraft {
namespace {

float dot(std::span<const float> a, std::span<const float> b) {
  if (a.empty()) return 0.0f;
  if (a.size() == 1) return a[0] * b[0];
  const std::size_t half = a.size() / 2;
  return dot(a.first(half), b.first(half)) + dot(a.subspan(half), b.subspan(half));
}

}  // namespace

void matmul_transb(float alpha, MatrixView<const float> a, MatrixView<const float> b, float beta,
                   MatrixView<float> c) {
  for (std::size_t m = 0; m < a.rows(); ++m) {
    for (std::size_t n = 0; n < b.rows(); ++n) {
      const float product = alpha * dot(a.row(m), b.row(n));
      c(m, n) = beta == 0.0f ? product : product + beta * c(m, n);
    }
  }
}

}  // namespace stagecraft
