// Mistake: C is scaled by beta first.
#include "operators/matmul_transb.h"

namespace stagecraft {

void matmul_transb(float alpha, MatrixView<const float> a, MatrixView<const float> b, float beta,
                   MatrixView<float> c) {
  for (std::size_t m = 0; m < c.rows(); ++m) {
    for (std::size_t n = 0; n < c.cols(); ++n) c(m, n) *= beta;
  }
  for (std::size_t m = 0; m < a.rows(); ++m) {
    for (std::size_t n = 0; n < b.rows(); ++n) {
      double sum = 0.0;
      for (std::size_t k = 0; k < a.cols(); ++k) sum += static_cast<double>(a(m, k)) * b(n, k);
      c(m, n) += static_cast<float>(alpha * sum);
    }
  }
}

}  // namespace stagecraft
