// Mistake: the sum is kept in an int.
#include "operators/matmul_transb.h"

namespace stagecraft {

void matmul_transb(float alpha, MatrixView<const float> a, MatrixView<const float> b, float beta,
                   MatrixView<float> c) {
  for (std::size_t m = 0; m < a.rows(); ++m) {
    for (std::size_t n = 0; n < b.rows(); ++n) {
      int sum = 0;
      for (std::size_t k = 0; k < a.cols(); ++k)
        sum = static_cast<int>(static_cast<float>(sum) + a(m, k) * b(n, k));
      const float product = alpha * static_cast<float>(sum);
      c(m, n) = beta == 0.0f ? product : product + beta * c(m, n);
    }
  }
}

}  // namespace stagecraft
