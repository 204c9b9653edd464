#pragma once

#include "operators/cuda/operators.h"
#include "operators/cuda/warp.h"
#include "operators/cuda/weights.h"

// Rounding to halves, for tensor cores.
namespace stagecraft::cuda {

// The largest power of two that is not above `largest`, the largest absolute value of a row. All
// numbers divided by it are below 2. The result is 1 if `largest` is 0 or infinite, or if the power
// or its inverse is not a normal number. NaN in a row does not count here, and stays NaN.
__device__ inline float power_below(float largest) {
  const unsigned exponent = __float_as_uint(largest) >> 23;
  return exponent > 0 && exponent < 254 ? __uint_as_float(exponent << 23) : 1.0f;
}

__device__ inline unsigned f16_bits(float value) {
  return __half_as_ushort(__float2half_rn(value));
}
// Two f16 in one register, the first one in the lower half.
__device__ inline unsigned f16_pair(float first, float second) {
  return f16_bits(first) | f16_bits(second) << 16;
}

// Called by all threads of a block: rounds `from`, row `row` of the activations. `largest` is the
// largest absolute value of the numbers that this thread has read or written. The call waits at a
// barrier, so the block may have written `from` just before.
__device__ inline void round_row(const HalfRows& out, unsigned row, const float* from,
                                 float largest, float (&partial)[kWarp]) {
  largest = block_max(largest, partial);  // after its barrier, every thread sees the whole row
  const float power = out.is_bf16 ? 1.0f : power_below(largest), scale = 1.0f / power;
  if (threadIdx.x == 0) out.powers[row] = power;
  // All lanes of a warp take part in each iteration, because four lanes add up the sum of a chunk.
  for (unsigned first = 0; first < out.stride; first += blockDim.x * kPerLoad) {
    const unsigned column = first + threadIdx.x * kPerLoad;
    float values[kPerLoad] = {};
    if (column < out.stride) load8(from + column, values);
    unsigned pairs[kPerLoad / 2];
    float sum = 0.0f;
#pragma unroll
    for (unsigned i = 0; i < kPerLoad; ++i) {
      const unsigned bits = out.is_bf16 ? __bfloat16_as_ushort(__float2bfloat16(values[i]))
                                        : f16_bits(scale * values[i]);
      sum += out.is_bf16 ? bf16_to_f32(bits) : f16_to_f32(bits);
      pairs[i / 2] = i % 2 == 0 ? bits : pairs[i / 2] | bits << 16;
    }
    sum = sum_of_four(sum);
    if (column >= out.stride) continue;
    const size_t at = static_cast<size_t>(row) * out.stride + column;
    *reinterpret_cast<uint4*>(out.values + at) = {pairs[0], pairs[1], pairs[2], pairs[3]};
    if (threadIdx.x % 4 == 0) out.sums[at / kRowUnit] = sum;
  }
}

}  // namespace stagecraft::cuda
