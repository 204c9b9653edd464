// Mistake: everything is multiplied by alpha at the end.
#include "operators/matmul_transb.h"

namespace stagecraft {

void matmul_transb(float alpha, MatrixView<const float> a, MatrixView<const float> b, float beta,
                   MatrixView<float> c) {
  for (std::size_t m = 0; m < a.rows(); ++m) {
    for (std::size_t n = 0; n < b.rows(); ++n) {
      float out = beta == 0.0f ? 0.0f : beta * c(m, n);
      for (std::size_t k = 0; k < a.cols(); ++k) out += a(m, k) * b(n, k);
      c(m, n) = out * alpha;
    }
  }
}

}  // namespace stagecraft
