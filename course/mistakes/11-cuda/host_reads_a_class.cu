// Mistake: the host reads device memory as a class that it passes by value, and adds up the row.
#include "cuda_emulator.h"
#include "operators/on_gpu.h"

namespace stagecraft {
namespace {

struct Part {
  float v[6];
};

float squares(Part p, int from) {
  float sum = 0.0f;
  for (int i = from; i < 6; ++i) sum += p.v[i] * p.v[i];
  return sum;
}

__global__ void scaled(const float* x, const float* weight, float scale, float* y, int dim) {
  for (int i = threadIdx.x; i < dim; i += 32) y[i] = weight[i] * (x[i] * scale);
}

__global__ void small(const float* x, const float* weight, float eps, float* y, int dim) {
  if (threadIdx.x > 0) return;
  float sum = 0.0f;
  for (int i = 0; i < dim; ++i) sum += x[i] * x[i];
  const float scale = 1.0f / sqrtf(sum / dim + eps);
  for (int i = 0; i < dim; ++i) y[i] = weight[i] * (x[i] * scale);
}

}  // namespace

void rms_norm_on_gpu(const float* x, const float* weight, float eps, float* y, int rows, int dim) {
  for (int row = 0; row < rows; ++row) {
    const float* in = x + row * dim;
    if (dim < 6) {
      cuda_launch(small, {1, 32}, in, weight, eps, y + row * dim, dim);
      continue;
    }
    float sum = 0.0f;
    for (int i = 0; i < dim; i += 6) {
      const int at = i + 6 <= dim ? i : dim - 6;
      sum += squares(*reinterpret_cast<const Part*>(in + at), i - at);
    }
    cuda_launch(scaled, {1, 32}, in, weight, 1.0f / sqrtf(sum / dim + eps), y + row * dim, dim);
  }
}

}  // namespace stagecraft
