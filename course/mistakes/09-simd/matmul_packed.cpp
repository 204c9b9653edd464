// mistakes.json holds edits of this program, which is right.
#include "operators/matmul_packed.h"

#include <algorithm>
#include <array>

namespace stagecraft {
namespace {

constexpr std::size_t kPanel = 16;

}  // namespace

PackedMatrix pack_b(MatrixView<const float> b) {
  const std::size_t panels = (b.rows() + kPanel - 1) / kPanel;
  PackedMatrix packed{b.rows(), b.cols(), Matrix<float>(panels, b.cols() * kPanel)};
  for (std::size_t n = 0; n < b.rows(); ++n) {
    float* lane = packed.data.data() + n / kPanel * b.cols() * kPanel + n % kPanel;
    for (std::size_t k = 0; k < b.cols(); ++k) lane[k * kPanel] = b(n, k);
  }
  return packed;
}

void matmul_packed(MatrixView<const float> a, const PackedMatrix& b, MatrixView<float> c) {
  for (std::size_t m = 0; m < a.rows(); ++m) {
    for (std::size_t first = 0; first < b.rows; first += kPanel) {
      const float* panel = b.data.data() + first * b.cols;
      std::array<float, kPanel> sums{};
      for (std::size_t k = 0; k < b.cols; ++k) {
        const float x = a(m, k);
        for (std::size_t lane = 0; lane < kPanel; ++lane)
          sums[lane] += x * panel[k * kPanel + lane];
      }
      std::copy_n(sums.begin(), std::min(kPanel, b.rows - first), c.row(m).begin() + first);
    }
  }
}

}  // namespace stagecraft
