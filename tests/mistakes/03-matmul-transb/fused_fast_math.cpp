// Right: fused multiply-adds, alpha inside; built with -ffast-math.
#include "operators/matmul_transb.h"

#include <cmath>

namespace stagecraft {

void matmul_transb(float alpha, MatrixView<const float> a, MatrixView<const float> b, float beta,
                   MatrixView<float> c) {
  for (std::size_t m = 0; m < a.rows(); ++m) {
    for (std::size_t n = 0; n < b.rows(); ++n) {
      float sum = 0.0f;
      for (std::size_t k = 0; k < a.cols(); ++k) sum = std::fma(alpha * a(m, k), b(n, k), sum);
      if (beta != 0.0f) sum = std::fma(beta, c(m, n), sum);
      c(m, n) = sum;
    }
  }
}

}  // namespace stagecraft
