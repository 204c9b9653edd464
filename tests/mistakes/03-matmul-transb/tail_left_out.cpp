// Mistake: four at a time, and what is left over is not added.
#include "operators/matmul_transb.h"

namespace stagecraft {

void matmul_transb(float alpha, MatrixView<const float> a, MatrixView<const float> b, float beta,
                   MatrixView<float> c) {
  for (std::size_t m = 0; m < a.rows(); ++m) {
    for (std::size_t n = 0; n < b.rows(); ++n) {
      float sum = 0.0f;
      for (std::size_t k = 0; k + 4 <= a.cols(); k += 4)
        sum += a(m, k) * b(n, k) + a(m, k + 1) * b(n, k + 1) + a(m, k + 2) * b(n, k + 2) +
               a(m, k + 3) * b(n, k + 3);
      c(m, n) = beta == 0.0f ? alpha * sum : alpha * sum + beta * c(m, n);
    }
  }
}

}  // namespace stagecraft
