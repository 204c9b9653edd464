// Attack: the same option, with a name that the preprocessor makes of two.
// Stage: 9
// Refused for: optimize
// Would earn: 12
#include "operators/matmul_packed.h"

#include <algorithm>

#define OPTION(...) _Pragma(#__VA_ARGS__)
#define EXPANDED(...) OPTION(__VA_ARGS__)
#define JOINED(a, b) a##b
EXPANDED(GCC JOINED(opti, mize)("fast-math"))

namespace stagecraft {

PackedMatrix pack_b(MatrixView<const float> b) {
  PackedMatrix packed{b.rows(), b.cols(), Matrix<float>(b.rows(), b.cols())};
  for (std::size_t n = 0; n < b.rows(); ++n) {
    std::ranges::copy(b.row(n), packed.data.view().row(n).begin());
  }
  return packed;
}

void matmul_packed(MatrixView<const float> a, const PackedMatrix& b, MatrixView<float> c) {
  for (std::size_t m = 0; m < a.rows(); ++m) {
    for (std::size_t n = 0; n < b.rows; ++n) {
      float sum = 0.0f;
      for (std::size_t k = 0; k < b.cols; ++k) sum += a(m, k) * b.data.view()(n, k);
      c(m, n) = sum;
    }
  }
}

}  // namespace stagecraft
