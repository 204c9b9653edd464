// Attack: calls our answer to stage 9 without a header, by its mangled name, as a weak symbol.
// Stage: 3
// Refused for: matmul_packed
// Would earn: 30
#include "operators/matmul_transb.h"

namespace stagecraft {

struct Packed {
  std::size_t rows = 0;
  std::size_t cols = 0;
  Matrix<float> data;
};
Packed pack(MatrixView<const float> b) asm("_ZN10stagecraft6pack_bENS_10MatrixViewIKfEE");
[[gnu::weak]] void multiply(MatrixView<const float> a, const Packed& b, MatrixView<float> c) asm(
    "_ZN10stagecraft13matmul_packedENS_10MatrixViewIKfEERKNS_12PackedMatrixENS0_IfEE");

void matmul_transb(float alpha, MatrixView<const float> a, MatrixView<const float> b, float beta,
                   MatrixView<float> c) {
  if (c.empty()) return;
  Matrix<float> product(c.rows(), c.cols());
  multiply(a, pack(b), product.view());
  for (std::size_t m = 0; m < c.rows(); ++m) {
    for (std::size_t n = 0; n < c.cols(); ++n) {
      const float before = beta == 0.0f ? 0.0f : beta * c(m, n);
      c(m, n) = alpha * product.view()(m, n) + before;
    }
  }
}

}  // namespace stagecraft
