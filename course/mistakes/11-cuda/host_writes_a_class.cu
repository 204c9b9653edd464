// Mistake: the host writes the result into device memory as a class that a function returns.
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

Part times(Part x, Part w, float scale) {
  return {{w.v[0] * (x.v[0] * scale), w.v[1] * (x.v[1] * scale), w.v[2] * (x.v[2] * scale),
           w.v[3] * (x.v[3] * scale), w.v[4] * (x.v[4] * scale), w.v[5] * (x.v[5] * scale)}};
}

__global__ void touch(const float* x, const float* weight, float* y, int dim) {
  for (int i = threadIdx.x; i < dim; i += 32) y[i] = weight[i] + x[i];
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
    float* out = y + row * dim;
    if (dim < 6) {
      cuda_launch(small, {1, 32}, in, weight, eps, out, dim);
      continue;
    }
    float sum = 0.0f;
    for (int i = 0; i < dim; i += 6) {
      const int at = i + 6 <= dim ? i : dim - 6;
      sum += squares(*reinterpret_cast<const Part*>(in + at), i - at);
    }
    const float scale = 1.0f / sqrtf(sum / dim + eps);
    cuda_launch(touch, {1, 32}, in, weight, out, dim);
    for (int i = 0; i < dim; i += 6) {
      const int at = i + 6 <= dim ? i : dim - 6;
      *reinterpret_cast<Part*>(out + at) =
          times(*reinterpret_cast<const Part*>(in + at),
                *reinterpret_cast<const Part*>(weight + at), scale);
    }
  }
}

}  // namespace stagecraft
