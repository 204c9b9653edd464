#pragma once

#include "operators/cuda/operators.h"
#include "operators/cuda/warp.h"

// Finds the keys and values of a sequence. T is the type of a cached element: float, __half or
// BlockQ8_0.
namespace stagecraft::cuda {

// How many T a head has.
template <class T>
__device__ inline unsigned per_head(const Cache& cache) {
  return cache.head_dim;
}
template <>
__device__ inline unsigned per_head<BlockQ8_0>(const Cache& cache) {
  return pieces(cache.head_dim, kWarp);
}
static_assert(BlockQ8_0::kSize == kWarp, "a lane per byte");

// The keys (which = 0) or values (1) of all positions of a sequence.
template <class T>
__device__ inline T* cached(const Cache& cache, int sequence, unsigned which) {
  const SequenceSlot slot = cache.slots[sequence];
  const unsigned bytes = cache.n_kv_heads * per_head<T>(cache) * sizeof(T);
  return reinterpret_cast<T*>(static_cast<char*>(slot.values) +
                              static_cast<size_t>(slot.capacity) * (cache.before + which * bytes));
}

}  // namespace stagecraft::cuda
