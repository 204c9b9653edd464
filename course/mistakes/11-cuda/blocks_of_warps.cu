// Right: a block per row, rows of four at once, a warp per kv head that serves all its query heads.
#include "cuda_emulator.h"
#include "operators/on_gpu.h"

namespace stagecraft {
namespace {

constexpr int kThreads = 128;

// Sums over a block by halves, in shared memory.
__global__ void norm(const float* x, const float* weight, float eps, float* y, int dim) {
  __shared__ float sums[kThreads];
  const int t = threadIdx.x;
  x += blockIdx.x * dim;
  y += blockIdx.x * dim;
  float squares = 0.0f;
  for (int i = t; i < dim; i += kThreads) squares += x[i] * x[i];
  sums[t] = squares;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (t < half) sums[t] += sums[t + half];
    __syncthreads();
  }
  const float scale = rsqrtf(sums[0] / dim + eps);
  for (int i = t; i < dim; i += kThreads) y[i] = x[i] * scale * weight[i];
}

// A warp per element of C; the lanes go along k.
__global__ void product(const float* a, const float* b, float* c, int m, int n, int k) {
  const int element = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (element >= m * n) return;
  const int row = element / n;
  const int col = element % n;
  float sum = 0.0f;
  for (int p = lane; p < k; p += 32) sum = fmaf(a[row * k + p], b[col * k + p], sum);
  for (int distance = 16; distance > 0; distance /= 2) {
    sum += __shfl_down_sync(0xffffffffu, sum, distance);
  }
  if (lane == 0) c[element] = sum;
}

// The scores of one head in dynamic shared memory, then softmax, then the values.
__global__ void attend(const float* q, const float* keys, const float* values, float* out,
                       int n_heads, int n_kv_heads, int head_dim, int length, float scale) {
  extern __shared__ float scores[];
  const int head = blockIdx.x;
  const int row = n_kv_heads * head_dim;
  const int first = head / (n_heads / n_kv_heads) * head_dim;
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  for (int j = warp; j < length; j += kThreads / 32) {
    float sum = 0.0f;
    for (int i = lane; i < head_dim; i += 32) {
      sum += q[head * head_dim + i] * keys[j * row + first + i];
    }
    for (int distance = 16; distance > 0; distance /= 2) {
      sum += __shfl_xor_sync(0xffffffffu, sum, distance);
    }
    if (lane == 0) scores[j] = sum * scale;
  }
  __syncthreads();
  float largest = scores[0];
  for (int j = 1; j < length; ++j) largest = fmaxf(largest, scores[j]);
  float weights = 0.0f;
  for (int j = 0; j < length; ++j) weights += expf(scores[j] - largest);
  for (int i = threadIdx.x; i < head_dim; i += kThreads) {
    float sum = 0.0f;
    for (int j = 0; j < length; ++j) sum += expf(scores[j] - largest) * values[j * row + first + i];
    out[head * head_dim + i] = sum / weights;
  }
}

}  // namespace

void rms_norm_on_gpu(const float* x, const float* weight, float eps, float* y, int rows, int dim) {
  const unsigned blocks = rows;
  cuda_launch(norm, {blocks, kThreads}, x, weight, eps, y, dim);
}

void matmul_transb_on_gpu(const float* a, const float* b, float* c, int m, int n, int k) {
  const unsigned blocks = (m * n + 3) / 4;
  cuda_launch(product, {blocks, kThreads}, a, b, c, m, n, k);
}

void attention_on_gpu(const float* q, const float* keys, const float* values, float* out,
                      int n_heads, int n_kv_heads, int head_dim, int length, float scale) {
  const unsigned blocks = n_heads;
  cuda_launch(attend, {blocks, kThreads, length * sizeof(float)}, q, keys, values, out, n_heads,
              n_kv_heads, head_dim, length, scale);
}

}  // namespace stagecraft
