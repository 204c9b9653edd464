// Mistake: C is cleared, then filled step by step.
#include "operators/matmul_transb.h"

namespace stagecraft {

void matmul_transb(float alpha, MatrixView<const float> a, MatrixView<const float> b,
                   [[maybe_unused]] float beta, MatrixView<float> c) {
  for (std::size_t m = 0; m < c.rows(); ++m) {
    for (std::size_t n = 0; n < c.cols(); ++n) c(m, n) = 0.0f;
  }
  for (std::size_t k = a.cols(); k-- > 0;) {
    for (std::size_t n = 0; n < b.rows(); ++n) {
      for (std::size_t m = 0; m < a.rows(); ++m) c(m, n) += alpha * a(m, k) * b(n, k);
    }
  }
}

}  // namespace stagecraft
