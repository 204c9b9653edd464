// Attack: multiplies with our answer to stage 9.
// Stage: 3
// Refused for: operators/matmul_packed.h
// Would earn: 30
#include "operators/matmul_packed.h"
#include "operators/matmul_transb.h"

namespace stagecraft {

void matmul_transb(float alpha, MatrixView<const float> a, MatrixView<const float> b, float beta,
                   MatrixView<float> c) {
  if (c.empty()) return;
  Matrix<float> product(c.rows(), c.cols());
  matmul_packed(a, pack_b(b), product.view());
  for (std::size_t m = 0; m < c.rows(); ++m) {
    for (std::size_t n = 0; n < c.cols(); ++n) {
      const float before = beta == 0.0f ? 0.0f : beta * c(m, n);
      c(m, n) = alpha * product.view()(m, n) + before;
    }
  }
}

}  // namespace stagecraft
