// Right: tiles of 4 x 4 x 16.
#include "operators/matmul_transb.h"

#include <algorithm>

namespace stagecraft {

void matmul_transb(float alpha, MatrixView<const float> a, MatrixView<const float> b, float beta,
                   MatrixView<float> c) {
  constexpr std::size_t kTile = 4;
  constexpr std::size_t kDepth = 16;
  for (std::size_t m0 = 0; m0 < a.rows(); m0 += kTile) {
    for (std::size_t n0 = 0; n0 < b.rows(); n0 += kTile) {
      float sums[kTile][kTile] = {};
      const std::size_t m1 = std::min(m0 + kTile, a.rows());
      const std::size_t n1 = std::min(n0 + kTile, b.rows());
      for (std::size_t k0 = 0; k0 < a.cols(); k0 += kDepth) {
        const std::size_t k1 = std::min(k0 + kDepth, a.cols());
        for (std::size_t m = m0; m < m1; ++m) {
          for (std::size_t n = n0; n < n1; ++n) {
            for (std::size_t k = k0; k < k1; ++k) sums[m - m0][n - n0] += a(m, k) * b(n, k);
          }
        }
      }
      for (std::size_t m = m0; m < m1; ++m) {
        for (std::size_t n = n0; n < n1; ++n) {
          const float product = alpha * sums[m - m0][n - n0];
          c(m, n) = beta == 0.0f ? product : product + beta * c(m, n);
        }
      }
    }
  }
}

}  // namespace stagecraft
