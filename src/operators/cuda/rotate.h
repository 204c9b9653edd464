#pragma once

#include "operators/cuda/operators.h"

// Used by rope() and rope_and_store().
namespace stagecraft::cuda {

// Rotates one pair of numbers of a head.
__device__ inline void rotate(float* head, unsigned pair, int position,
                              const RopeOptions& options) {
  const float angle = static_cast<float>(position) * options.frequencies[pair];
  const float c = cosf(angle), s = sinf(angle);
  float* first = head + options.first_column + (options.neighbours ? 2 * pair : pair);
  float* second = first + (options.neighbours ? 1 : options.n_frequencies);
  const float a = *first, b = *second;
  *first = fmaf(a, c, -(b * s));
  *second = fmaf(a, s, b * c);
}

}  // namespace stagecraft::cuda
