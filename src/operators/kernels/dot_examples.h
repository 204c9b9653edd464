#pragma once

#include "operators/kernels/row_kernels.h"
#include "operators/kernels/simd.h"

// Rungs 0 to 2 of docs/kernels.md; matmul_tiles.h has the next ones. Each function computes one
// number of a product: the sum of a[k] * b[k], with a row of activations and a row of weights in
// the order of the file. The engine uses none of them: `./stage bench --operators` measures them,
// and a test compares them with the textbook operator.

namespace stagecraft::STAGECRAFT_ISA {
namespace {

// Rung 0: the formula. Each addition waits for the previous one.
float dot_of_numbers(const float* a, const float* b, std::size_t n) {
  float total = 0.0f;
  for (std::size_t k = 0; k < n; ++k) total += a[k] * b[k];
  return total;
}

// Rung 1 has one vector of sums: kLanes numbers per instruction; the lanes are added at the end.
// Rung 2 has four vectors of sums: an fma takes four cycles, so one can start in each cycle.
template <std::size_t Sums>
float dot_of_vectors(const float* a, const float* b, std::size_t n) {
  constexpr std::size_t kStep = Sums * kLanes;
  Vec acc[Sums] = {};
  std::size_t k = 0;
  for (; k + kStep <= n; k += kStep) {
    STAGECRAFT_UNROLL
    for (std::size_t s = 0; s < Sums; ++s) {
      acc[s] = fma(load(a + k + s * kLanes), load(b + k + s * kLanes), acc[s]);
    }
  }
  for (; k + kLanes <= n; k += kLanes) acc[0] = fma(load(a + k), load(b + k), acc[0]);
  if (k < n) acc[0] = fma(load_part(a + k, n - k), load_part(b + k, n - k), acc[0]);
  for (std::size_t s = 1; s < Sums; ++s) acc[0] += acc[s];
  return sum(acc[0]);
}

}  // namespace
}  // namespace stagecraft::STAGECRAFT_ISA
