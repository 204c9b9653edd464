#pragma once

#include "cuda_emulator.h"

// What most kernels share: 32 threads, a warp, execute together and can read each other's
// registers.
namespace stagecraft::cuda {

inline constexpr unsigned kWarp = 32;
inline constexpr unsigned kAllLanes = 0xffffffffu;

// The sum of all lanes' values, in every lane: five steps instead of 31. Each step adds the value
// of the lane whose number differs in one bit. a + b is b + a, so all lanes get the same bits.
__device__ inline float warp_sum(float value) {
  for (int bit = 16; bit > 0; bit /= 2) value += __shfl_xor_sync(kAllLanes, value, bit);
  return value;
}

__device__ inline float warp_max(float value) {
  for (int bit = 16; bit > 0; bit /= 2) {
    value = fmaxf(value, __shfl_xor_sync(kAllLanes, value, bit));
  }
  return value;
}

// The sum over a block of up to 32 warps. Registers can only be read within a warp, so the warps
// meet in shared memory. `partial` must not be in use by another sum.
__device__ inline float block_sum(float value, float (&partial)[kWarp]) {
  value = warp_sum(value);
  if (threadIdx.x % kWarp == 0) partial[threadIdx.x / kWarp] = value;
  __syncthreads();
  float sum = 0.0f;
  for (unsigned warp = 0; warp < blockDim.x / kWarp; ++warp) sum += partial[warp];
  return sum;
}

// Blocks of `threads` for n items.
inline unsigned blocks_for(unsigned n, unsigned threads) { return (n + threads - 1) / threads; }

}  // namespace stagecraft::cuda
