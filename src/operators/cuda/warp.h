#pragma once

#include "cuda_emulator.h"
#include "operators/cuda/device.h"

// Functions that most kernels use. A warp is 32 threads that execute together and can read each
// other's registers. Each of these threads is a lane.
namespace stagecraft::cuda {

inline constexpr unsigned kWarp = 32;
inline constexpr unsigned kAllLanes = 0xffffffffu;

// Returns the sum of all lanes' values to every lane, in 5 steps instead of 31. Each step adds the
// value of the lane whose number differs in one bit. a + b and b + a have the same bits, so all
// lanes get the same sum.
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

// The sum, and the largest value, of four lanes: lanes 4i to 4i + 3, with i = lane / 4.
__device__ inline float sum_of_four(float value) {
  for (int bit = 1; bit < 4; bit *= 2) value += __shfl_xor_sync(kAllLanes, value, bit);
  return value;
}
__device__ inline float max_of_four(float value) {
  for (int bit = 1; bit < 4; bit *= 2) {
    value = fmaxf(value, __shfl_xor_sync(kAllLanes, value, bit));
  }
  return value;
}

// The result of the warp whose number is this lane's; `none` if the block has no such warp.
__device__ inline float result_of_warp(const float (&partial)[kWarp], float none) {
  const unsigned lane = threadIdx.x % kWarp;
  return lane < blockDim.x / kWarp ? partial[lane] : none;
}
// The sum, or the largest value, over a block of up to 32 warps, in every thread. A thread cannot
// read registers of another warp. So the warps exchange their results in shared memory (`partial`),
// and each warp reduces all of them. Each call needs its own `partial`, or a barrier before it: a
// slow warp may still read the results of the call before.
__device__ inline float block_sum(float value, float (&partial)[kWarp]) {
  value = warp_sum(value);
  if (threadIdx.x % kWarp == 0) partial[threadIdx.x / kWarp] = value;
  __syncthreads();
  return warp_sum(result_of_warp(partial, 0.0f));
}
__device__ inline float block_max(float value, float (&partial)[kWarp]) {
  value = warp_max(value);
  if (threadIdx.x % kWarp == 0) partial[threadIdx.x / kWarp] = value;
  __syncthreads();
  return warp_max(result_of_warp(partial, -INFINITY));
}

// Launches a kernel in current_stream() (device.h).
template <class... Parameters, class... Arguments>
void run_kernel(void (*kernel)(Parameters...), LaunchShape shape, Arguments... arguments) {
  shape.stream = static_cast<cudaStream_t>(current_stream());
  cuda_launch(kernel, shape, arguments...);
}

// How many pieces of `size` items are needed for n items.
__host__ __device__ inline unsigned pieces(unsigned n, unsigned size) {
  return (n + size - 1) / size;
}

}  // namespace stagecraft::cuda
