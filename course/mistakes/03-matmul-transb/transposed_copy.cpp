// Right: b is transposed into memory of its own first.
#include "operators/matmul_transb.h"

#include <vector>

namespace stagecraft {

void matmul_transb(float alpha, MatrixView<const float> a, MatrixView<const float> b, float beta,
                   MatrixView<float> c) {
  std::vector<float> transposed(b.rows() * b.cols());
  for (std::size_t n = 0; n < b.rows(); ++n) {
    for (std::size_t k = 0; k < b.cols(); ++k) transposed[k * b.rows() + n] = b(n, k);
  }
  for (std::size_t m = 0; m < a.rows(); ++m) {
    for (std::size_t n = 0; n < b.rows(); ++n) {
      float sum = 0.0f;
      for (std::size_t k = 0; k < a.cols(); ++k) sum += a(m, k) * transposed[k * b.rows() + n];
      c(m, n) = beta == 0.0f ? alpha * sum : alpha * sum + beta * c(m, n);
    }
  }
}

}  // namespace stagecraft
