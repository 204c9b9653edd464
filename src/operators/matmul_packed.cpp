// This gives away stage 9: it is our answer to stages/09-simd/matmul_packed.cpp.
#include "operators/matmul_packed.h"

#include <algorithm>

#include "operators/check.h"

namespace stagecraft {
namespace {

// A vector of eight floats, a type that GCC and Clang know. It fills one AVX register or two NEON
// registers. In arithmetic with a scalar, the scalar is broadcast to all lanes. A Lanes may start
// at any address at which a float may start.
using Lanes [[gnu::vector_size(32), gnu::aligned(4), gnu::may_alias]] = float;

constexpr std::size_t kVector = 8;   // floats in a Lanes
constexpr std::size_t kPanel = 16;   // rows of B in a panel: two Lanes
constexpr std::size_t kRows = 6;     // rows of A in a tile: 6 x 2 sums, 2 of B, 1 of A: 15 of 16
                                     // registers
constexpr std::size_t kAbreast = 4;  // panels in a tile of a single row: 8 sums, because an FMA
                                     // takes four cycles and two start in each cycle

// c[r][p * 16 + lane] = sum over k of a[r][k] * panel p's [k][lane]: one outer product per k. All
// sums stay in registers, and no lane is added to another. So the bits depend only on the order of
// k, not on Rows and Panels.
//
//   panels  `Panels` panels of [k, 16], one after the other
//   width   number of columns that c has; the other lanes are padding
template <std::size_t Rows, std::size_t Panels>
void tile(MatrixView<const float> a, const float* panels, std::size_t width, MatrixView<float> c) {
  constexpr std::size_t kVectors = Panels * kPanel / kVector;
  const std::size_t depth = a.cols();
  Lanes sums[Rows][kVectors] = {};
  for (std::size_t k = 0; k < depth; ++k) {
    Lanes b[kVectors];
    for (std::size_t v = 0; v < kVectors; ++v) {
      const std::size_t panel = v * kVector / kPanel;
      const float* at = panels + (panel * depth + k) * kPanel + v * kVector % kPanel;
      b[v] = *reinterpret_cast<const Lanes*>(at);
    }
    for (std::size_t r = 0; r < Rows; ++r) {
      const float x = a.data()[r * a.stride() + k];
      for (std::size_t v = 0; v < kVectors; ++v) sums[r][v] += x * b[v];
    }
  }
  for (std::size_t r = 0; r < Rows; ++r) {
    std::copy_n(reinterpret_cast<const float*>(sums[r]), width, c.row(r).data());
  }
}

}  // namespace

// [n / 16][k][16]: the 16 weights of a panel for one k lie side by side, then those of the next k.
// The last panel is filled up with rows of zeros.
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
  check_size("matmul_packed", "columns of b", a.cols(), b.cols);
  check_shape("matmul_packed", "c", a.rows(), b.rows, c);
  const std::size_t rows_in_tiles = a.rows() - a.rows() % kRows;
  // The outer loop runs over panels: a panel stays in L1 while all rows of A are multiplied by it.
  for (std::size_t n = 0; n < b.rows && rows_in_tiles > 0; n += kPanel) {
    const float* panel = b.data.data() + n * b.cols;
    const std::size_t width = std::min(kPanel, b.rows - n);
    const auto out = c.col_range(n, width);
    for (std::size_t m = 0; m < rows_in_tiles; m += kRows) {
      tile<kRows, 1>(a.row_range(m, kRows), panel, width, out.row_range(m, kRows));
    }
  }
  for (std::size_t m = rows_in_tiles; m < a.rows(); ++m) {
    const auto row = a.row_range(m, 1);
    const auto out = c.row_range(m, 1);
    std::size_t n = 0;
    for (; n + kAbreast * kPanel <= b.rows; n += kAbreast * kPanel) {
      constexpr std::size_t kWidth = kAbreast * kPanel;
      tile<1, kAbreast>(row, b.data.data() + n * b.cols, kWidth, out.col_range(n, kWidth));
    }
    for (; n < b.rows; n += kPanel) {
      const std::size_t width = std::min(kPanel, b.rows - n);
      tile<1, 1>(row, b.data.data() + n * b.cols, width, out.col_range(n, width));
    }
  }
}

}  // namespace stagecraft
