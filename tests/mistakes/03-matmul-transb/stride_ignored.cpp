// Mistake: rows are taken to lie side by side.
#include "operators/matmul_transb.h"

namespace stagecraft {

void matmul_transb(float alpha, MatrixView<const float> a, MatrixView<const float> b, float beta,
                   MatrixView<float> c) {
  const std::size_t k_len = a.cols();
  for (std::size_t m = 0; m < a.rows(); ++m) {
    for (std::size_t n = 0; n < b.rows(); ++n) {
      float sum = 0.0f;
      for (std::size_t k = 0; k < k_len; ++k)
        sum += a.data()[m * k_len + k] * b.data()[n * k_len + k];
      float& out = c.data()[m * b.rows() + n];
      out = beta == 0.0f ? alpha * sum : alpha * sum + beta * out;
    }
  }
}

}  // namespace stagecraft
