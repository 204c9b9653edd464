// Steps 1 to 3 of stage 9, compiled with its flags. Step 4 is src/operators/matmul_packed.cpp.
#include "course/worker/calls.h"
#include "course/worker/chain.h"

namespace stagecraft::stages {
namespace {

using Lanes [[gnu::vector_size(32), gnu::aligned(4), gnu::may_alias]] = float;
constexpr std::size_t kLanes = 8;

// By value: of a reference that a function returns, Clang forgets aligned(4).
Lanes load(const float* at) { return *reinterpret_cast<const Lanes*>(at); }

// Step 1 has one accumulator, step 2 has four.
template <std::size_t Accumulators>
float dot(const float* a, const float* b, std::size_t size) {
  constexpr std::size_t kStep = Accumulators * kLanes;
  Lanes sums[Accumulators] = {};
  std::size_t k = 0;
  for (; k + kStep <= size; k += kStep) {
    for (std::size_t i = 0; i < Accumulators; ++i) {
      sums[i] += load(a + k + i * kLanes) * load(b + k + i * kLanes);
    }
  }
  for (std::size_t i = 1; i < Accumulators; ++i) sums[0] += sums[i];
  float sum = 0.0f;
  for (std::size_t lane = 0; lane < kLanes; ++lane) sum += sums[0][lane];
  for (; k < size; ++k) sum += a[k] * b[k];
  return sum;
}

template <std::size_t Accumulators>
void by_dots(MatrixView<const float> a, MatrixView<const float> b, MatrixView<float> c) {
  for (std::size_t m = 0; m < a.rows(); ++m) {
    for (std::size_t n = 0; n < b.rows(); ++n) {
      c(m, n) = dot<Accumulators>(a.row(m).data(), b.row(n).data(), a.cols());
    }
  }
}

template <std::size_t Rows, std::size_t Columns>
void tile(MatrixView<const float> a, MatrixView<const float> b, MatrixView<float> c) {
  Lanes sums[Rows][Columns] = {};
  std::size_t k = 0;
  for (; k + kLanes <= a.cols(); k += kLanes) {
    Lanes x[Rows];
    Lanes y[Columns];
    for (std::size_t m = 0; m < Rows; ++m) x[m] = load(a.data() + m * a.stride() + k);
    for (std::size_t n = 0; n < Columns; ++n) y[n] = load(b.data() + n * b.stride() + k);
    for (std::size_t m = 0; m < Rows; ++m) {
      for (std::size_t n = 0; n < Columns; ++n) sums[m][n] += x[m] * y[n];
    }
  }
  for (std::size_t m = 0; m < Rows; ++m) {
    for (std::size_t n = 0; n < Columns; ++n) {
      float sum = 0.0f;
      for (std::size_t lane = 0; lane < kLanes; ++lane) sum += sums[m][n][lane];
      for (std::size_t rest = k; rest < a.cols(); ++rest) sum += a(m, rest) * b(n, rest);
      c(m, n) = sum;
    }
  }
}

template <std::size_t Columns>
void by_tiles_of(MatrixView<const float> a, MatrixView<const float> b, MatrixView<float> c) {
  constexpr std::size_t kRows = 3;
  std::size_t m = 0;
  for (; m + kRows <= a.rows(); m += kRows) {
    tile<kRows, Columns>(a.row_range(m, kRows), b, c.row_range(m, kRows));
  }
  for (; m < a.rows(); ++m) tile<1, Columns>(a.row_range(m, 1), b, c.row_range(m, 1));
}

// Step 3
void by_tiles(MatrixView<const float> a, MatrixView<const float> b, MatrixView<float> c) {
  constexpr std::size_t kColumns = 4;
  std::size_t n = 0;
  for (; n + kColumns <= b.rows(); n += kColumns) {
    by_tiles_of<kColumns>(a, b.row_range(n, kColumns), c.col_range(n, kColumns));
  }
  for (; n < b.rows(); ++n) by_tiles_of<1>(a, b.row_range(n, 1), c.col_range(n, 1));
}

template <void (*kMultiply)(MatrixView<const float>, MatrixView<const float>, MatrixView<float>)>
void call_step(Arguments& args) {
  const auto noise = args.vector("noise");
  const auto b = args.matrix("b");
  run_chain(args, noise, b.cols(),
            [&](MatrixView<const float> a, MatrixView<float> c) { kMultiply(a, b, c); });
}

const Callable kSimdSteps{{"step 1 of simd, again and again", call_step<by_dots<1>>},
                          {"step 2 of simd, again and again", call_step<by_dots<4>>},
                          {"step 3 of simd, again and again", call_step<by_tiles>}};

}  // namespace

}  // namespace stagecraft::stages
