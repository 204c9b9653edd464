// Mistake: one index counts rows of a and rows of b.
#include "operators/matmul_transb.h"

namespace stagecraft {

void matmul_transb(float alpha, MatrixView<const float> a, MatrixView<const float> b, float beta,
                   MatrixView<float> c) {
  for (std::size_t i = 0; i < c.rows() && i < c.cols(); ++i) {
    float sum = 0.0f;
    for (std::size_t k = 0; k < a.cols(); ++k) sum += a(i, k) * b(i, k);
    c(i, i) = beta == 0.0f ? alpha * sum : alpha * sum + beta * c(i, i);
  }
}

}  // namespace stagecraft
