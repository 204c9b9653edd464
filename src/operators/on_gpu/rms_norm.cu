// This gives away stage 11: it is our answer to stages/11-cuda/rms_norm.cu.
#include "cuda_emulator.h"
#include "operators/on_gpu.h"

namespace stagecraft {
namespace {

constexpr int kWarps = 4;  // per block; each warp computes one row

__device__ float sum_of_warp(float value) {
  for (int distance = 16; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(0xffffffffu, value, distance);
  }
  return value;
}

__global__ void rms_norm(const float* x, const float* weight, float eps, float* y, int rows,
                         int dim) {
  const int lane = threadIdx.x % 32;
  const int row = blockIdx.x * kWarps + threadIdx.x / 32;
  if (row >= rows) return;  // the whole warp returns, so no shuffle needs it
  const float* in = x + row * dim;
  float* out = y + row * dim;
  float sum_of_squares = 0.0f;
  for (int i = lane; i < dim; i += 32) {
    const float value = in[i];
    sum_of_squares += value * value;
  }
  const float scale = 1.0f / sqrtf(sum_of_warp(sum_of_squares) / dim + eps);
  for (int i = lane; i < dim; i += 32) out[i] = weight[i] * (in[i] * scale);
}

}  // namespace

void rms_norm_on_gpu(const float* x, const float* weight, float eps, float* y, int rows, int dim) {
  const unsigned blocks = (rows + kWarps - 1) / kWarps;
  cuda_launch(rms_norm, {blocks, 32 * kWarps}, x, weight, eps, y, rows, dim);
}

}  // namespace stagecraft
