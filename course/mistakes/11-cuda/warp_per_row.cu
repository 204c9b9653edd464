// Right: rms_norm with a warp per row, eight rows per block.
#include "cuda_emulator.h"
#include "operators/on_gpu.h"

namespace stagecraft {
namespace {

__device__ float sum_of_warp(float value) {
  for (int distance = 16; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(0xffffffffu, value, distance);
  }
  return value;
}

__global__ void norm(const float* x, const float* weight, float eps, float* y, int rows, int dim) {
  const int lane = threadIdx.x;
  const int row = blockIdx.x * blockDim.y + threadIdx.y;
  if (row >= rows) return;
  float squares = 0.0f;
  for (int i = lane; i < dim; i += 32) squares += x[row * dim + i] * x[row * dim + i];
  squares = sum_of_warp(squares);
  const float scale = 1.0f / sqrtf(squares / dim + eps);
  for (int i = lane; i < dim; i += 32) {
    y[row * dim + i] = weight[i] * (x[row * dim + i] * scale);
  }
}

}  // namespace

void rms_norm_on_gpu(const float* x, const float* weight, float eps, float* y, int rows, int dim) {
  const unsigned blocks = (rows + 7) / 8;
  cuda_launch(norm, {blocks, dim3(32, 8)}, x, weight, eps, y, rows, dim);
}

}  // namespace stagecraft
