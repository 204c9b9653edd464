// Mistake: a loop over blocks of four that k / 4 counts.
#include "operators/matmul_transb.h"

namespace stagecraft {

void matmul_transb(float alpha, MatrixView<const float> a, MatrixView<const float> b, float beta,
                   MatrixView<float> c) {
  for (std::size_t m = 0; m < a.rows(); ++m) {
    for (std::size_t n = 0; n < b.rows(); ++n) {
      double sums[4] = {};
      for (std::size_t block = 0; block < a.cols() / 4; ++block) {
        for (std::size_t j = 0; j < 4; ++j) sums[j] += a(m, 4 * block + j) * b(n, 4 * block + j);
      }
      const float product = alpha * static_cast<float>(sums[0] + sums[1] + sums[2] + sums[3]);
      c(m, n) = beta == 0.0f ? product : product + beta * c(m, n);
    }
  }
}

}  // namespace stagecraft
