// Right: a warp per row, tiles of 16 x 16, a warp per query head.
#include "cuda_emulator.h"
#include "operators/on_gpu.h"

namespace stagecraft {
namespace {

constexpr int kTile = 16;

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

__global__ void product(const float* a, const float* b, float* c, int m, int n, int k) {
  __shared__ float a_tile[kTile][kTile];
  __shared__ float b_tile[kTile][kTile + 1];
  const int x = threadIdx.x;
  const int y = threadIdx.y;
  const int row = blockIdx.y * kTile + y;
  const int col = blockIdx.x * kTile + x;
  const int b_row = blockIdx.x * kTile + y;
  float sum = 0.0f;
  for (int piece = 0; piece < k; piece += kTile) {
    a_tile[y][x] = row < m && piece + x < k ? a[row * k + piece + x] : 0.0f;
    b_tile[y][x] = b_row < n && piece + x < k ? b[b_row * k + piece + x] : 0.0f;
    __syncthreads();
    for (int p = 0; p < kTile; ++p) sum += a_tile[y][p] * b_tile[x][p];
    __syncthreads();
  }
  if (row < m && col < n) c[row * n + col] = sum;
}

__global__ void attend(const float* q, const float* keys, const float* values, float* out,
                       int n_heads, int n_kv_heads, int head_dim, int length, float scale) {
  const int lane = threadIdx.x;
  const int head = blockIdx.x;
  const int kv_head = head / (n_heads / n_kv_heads);
  float query[4] = {};
  for (int p = 0; p < 4; ++p) {
    if (p * 32 + lane < head_dim) query[p] = q[head * head_dim + p * 32 + lane];
  }
  float sum[4] = {};
  float largest = -INFINITY;
  float weights = 0.0f;
  for (int j = 0; j < length; ++j) {
    const float* key = keys + (j * n_kv_heads + kv_head) * head_dim;
    const float* value = values + (j * n_kv_heads + kv_head) * head_dim;
    float product = 0.0f;
    for (int p = 0; p < 4; ++p) {
      if (p * 32 + lane < head_dim) product += query[p] * key[p * 32 + lane];
    }
    const float score = sum_of_warp(product) * scale;
    const float larger = fmaxf(largest, score);
    const float shrink = expf(largest - larger);
    const float weight = expf(score - larger);
    weights = weights * shrink + weight;
    for (int p = 0; p < 4; ++p) {
      if (p * 32 + lane < head_dim) sum[p] = sum[p] * shrink + weight * value[p * 32 + lane];
    }
    largest = larger;
  }
  for (int p = 0; p < 4; ++p) {
    if (p * 32 + lane < head_dim) out[head * head_dim + p * 32 + lane] = sum[p] / weights;
  }
}

}  // namespace

void rms_norm_on_gpu(const float* x, const float* weight, float eps, float* y, int rows, int dim) {
  const unsigned blocks = (rows + 7) / 8;
  cuda_launch(norm, {blocks, dim3(32, 8)}, x, weight, eps, y, rows, dim);
}

void matmul_transb_on_gpu(const float* a, const float* b, float* c, int m, int n, int k) {
  const dim3 blocks((n + kTile - 1) / kTile, (m + kTile - 1) / kTile);
  cuda_launch(product, {blocks, dim3(kTile, kTile)}, a, b, c, m, n, k);
}

void attention_on_gpu(const float* q, const float* keys, const float* values, float* out,
                      int n_heads, int n_kv_heads, int head_dim, int length, float scale) {
  const unsigned blocks = n_heads;
  cuda_launch(attend, {blocks, 32}, q, keys, values, out, n_heads, n_kv_heads, head_dim, length,
              scale);
}

}  // namespace stagecraft
