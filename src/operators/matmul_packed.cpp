// This gives away stage 9: it is our answer to stages/09-simd/matmul_packed.cpp.
#include "operators/matmul_packed.h"

#include <algorithm>

#include "operators/check.h"

namespace stagecraft {
namespace {

// Eight numbers that the processor treats as one: GCC and Clang know such types, give them one
// register of AVX (or two of NEON, or whatever there is), and arithmetic with a scalar spreads it.
// It may start at any address that a float may.
using Lanes [[gnu::vector_size(32), gnu::aligned(4), gnu::may_alias]] = float;

constexpr std::size_t kVector = 8;   // numbers in a Lanes
constexpr std::size_t kPanel = 16;   // rows of B that are computed together: two Lanes
constexpr std::size_t kRows = 6;     // rows of A with them: 6 x 2 sums, 2 of B, 1 of A = 15 of 16
constexpr std::size_t kAbreast = 4;  // panels for a single row, whose sums would else wait for
                                     // each other: an FMA takes four cycles, two start in each

// c[r][p * 16 + lane] = sum over k of a[r][k] * panel p's [k][lane]: one outer product per k. All
// sums stay in registers, and no lane is added to another. So the bits depend on the order of k
// alone, whatever Rows and Panels are.
//
//   panels  Panels of them, each [k, 16], one after the other
//   width   of the columns of c how many there are; the others are padding
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

// [n / 16][k][16]: what a step of the tile reads lies side by side, and the next step's after it.
// The rows that are missing in the last panel are zeros.
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
  // A panel outside: it stays in the first cache while all rows of A pass by.
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
