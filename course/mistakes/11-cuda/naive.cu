// Right: one thread per row, per element and per head; no shared memory, no shuffle.
#include "cuda_emulator.h"
#include "operators/on_gpu.h"

namespace stagecraft {
namespace {

__global__ void norm(const float* x, const float* weight, float eps, float* y, int rows, int dim) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float squares = 0.0f;
  for (int i = 0; i < dim; ++i) squares += x[row * dim + i] * x[row * dim + i];
  const float scale = rsqrtf(squares / dim + eps);
  for (int i = 0; i < dim; ++i) y[row * dim + i] = weight[i] * x[row * dim + i] * scale;
}

__global__ void product(const float* a, const float* b, float* c, int n, int k) {
  const int col = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = blockIdx.y;
  if (col >= n) return;
  float sum = 0.0f;
  for (int p = 0; p < k; ++p) sum += a[row * k + p] * b[col * k + p];
  c[row * n + col] = sum;
}

// The scores are computed three times, as there is nowhere to keep them.
__global__ void attend(const float* q, const float* keys, const float* values, float* out,
                       int n_heads, int n_kv_heads, int head_dim, int length, float scale) {
  const int head = threadIdx.x;
  const int kv_head = head * n_kv_heads / n_heads;
  const int row = n_kv_heads * head_dim;
  const auto score = [&](int j) {
    float sum = 0.0f;
    for (int i = 0; i < head_dim; ++i) {
      sum += q[head * head_dim + i] * keys[j * row + kv_head * head_dim + i];
    }
    return sum * scale;
  };
  float largest = score(0);
  for (int j = 1; j < length; ++j) largest = fmaxf(largest, score(j));
  float weights = 0.0f;
  for (int i = 0; i < head_dim; ++i) out[head * head_dim + i] = 0.0f;
  for (int j = 0; j < length; ++j) {
    const float weight = expf(score(j) - largest);
    weights += weight;
    for (int i = 0; i < head_dim; ++i) {
      out[head * head_dim + i] += weight * values[j * row + kv_head * head_dim + i];
    }
  }
  for (int i = 0; i < head_dim; ++i) out[head * head_dim + i] /= weights;
}

}  // namespace

void rms_norm_on_gpu(const float* x, const float* weight, float eps, float* y, int rows, int dim) {
  const unsigned blocks = (rows + 63) / 64;
  cuda_launch(norm, {blocks, 64}, x, weight, eps, y, rows, dim);
}

void matmul_transb_on_gpu(const float* a, const float* b, float* c, int m, int n, int k) {
  const unsigned across = (n + 63) / 64;
  const unsigned down = m;
  cuda_launch(product, {dim3(across, down), 64}, a, b, c, n, k);
}

void attention_on_gpu(const float* q, const float* keys, const float* values, float* out,
                      int n_heads, int n_kv_heads, int head_dim, int length, float scale) {
  const unsigned threads = n_heads;
  cuda_launch(attend, {1, threads}, q, keys, values, out, n_heads, n_kv_heads, head_dim, length,
              scale);
}

}  // namespace stagecraft
