// Attack: multiplies with our answer to stage 3.
// Stage: 9
// Refused for: matmul_transb
// Would earn: 12
#include "operators/matmul_packed.h"

namespace stagecraft {

void matmul_transb(float alpha, MatrixView<const float> a, MatrixView<const float> b, float beta,
                   MatrixView<float> c);

PackedMatrix pack_b(MatrixView<const float> b) {
  PackedMatrix packed{b.rows(), b.cols(), Matrix<float>(b.rows(), b.cols())};
  for (std::size_t n = 0; n < b.rows(); ++n) {
    for (std::size_t k = 0; k < b.cols(); ++k) packed.data.view()(n, k) = b(n, k);
  }
  return packed;
}

void matmul_packed(MatrixView<const float> a, const PackedMatrix& b, MatrixView<float> c) {
  matmul_transb(1.0f, a, b.data.view(), 0.0f, c);
}

}  // namespace stagecraft
