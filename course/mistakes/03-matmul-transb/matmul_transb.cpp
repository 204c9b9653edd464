// mistakes.json holds edits of this program, which is right.
#include "operators/matmul_transb.h"

namespace stagecraft {

void matmul_transb(float alpha, MatrixView<const float> a, MatrixView<const float> b, float beta,
                   MatrixView<float> c) {
  for (std::size_t m = 0; m < a.rows(); ++m) {
    for (std::size_t n = 0; n < b.rows(); ++n) {
      float sum = 0.0f;
      for (std::size_t k = 0; k < a.cols(); ++k) sum += a(m, k) * b(n, k);
      c(m, n) = beta == 0.0f ? alpha * sum : alpha * sum + beta * c(m, n);
    }
  }
}

}  // namespace stagecraft
