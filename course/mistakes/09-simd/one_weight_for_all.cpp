// Mistake: there is one place for a packed weight, and the next one takes it.
#include "operators/matmul_packed.h"

#include <vector>

namespace stagecraft {
namespace {

std::vector<float> packed_weight;

}  // namespace

PackedMatrix pack_b(MatrixView<const float> b) {
  packed_weight.clear();
  for (std::size_t n = 0; n < b.rows(); ++n) {
    packed_weight.insert(packed_weight.end(), b.row(n).begin(), b.row(n).end());
  }
  return {b.rows(), b.cols(), {}};
}

void matmul_packed(MatrixView<const float> a, const PackedMatrix& b, MatrixView<float> c) {
  for (std::size_t m = 0; m < a.rows(); ++m) {
    for (std::size_t n = 0; n < b.rows; ++n) {
      float sum = 0.0f;
      for (std::size_t k = 0; k < b.cols; ++k) sum += a(m, k) * packed_weight[n * b.cols + k];
      c(m, n) = sum;
    }
  }
}

}  // namespace stagecraft
