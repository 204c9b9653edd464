// The kernels of the tables of steps in stages/11-cuda/README.md. Each kernel is named NAME_STEP. cuda_emulator_test.py
// compares their counts with the numbers in the handouts.
#include "cuda_emulator.h"

__device__ float warp_sum(float value) {
  for (int d = 16; d > 0; d /= 2) value += __shfl_xor_sync(0xffffffffu, value, d);
  return value;
}

__global__ void rms_norm_1(const float* x, const float* weight, float* y, int rows, int dim) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0;
  for (int i = 0; i < dim; ++i) {
    const float value = x[row * dim + i];
    sum += value * value;
  }
  for (int i = 0; i < dim; ++i) y[row * dim + i] = weight[i] * x[row * dim + i] * rsqrtf(sum / dim);
}

__global__ void rms_norm_2(const float* x, const float* weight, float* y, int rows, int dim) {
  const int row = blockIdx.x * blockDim.y + threadIdx.y, lane = threadIdx.x;
  if (row >= rows) return;
  float sum = 0;
  for (int i = lane; i < dim; i += 32) {
    const float value = x[row * dim + i];
    sum += value * value;
  }
  sum = warp_sum(sum);
  for (int i = lane; i < dim; i += 32) {
    y[row * dim + i] = weight[i] * x[row * dim + i] * rsqrtf(sum / dim);
  }
}

__global__ void matmul_transb_1(const float* a, const float* b, float* c, int n, int k) {
  const int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
  float sum = 0;
  for (int p = 0; p < k; ++p) {
    const float other = b[col * k + p];  // on its own line, so that its sectors count alone
    sum += a[row * k + p] * other;
  }
  c[row * n + col] = sum;
}

__global__ void matmul_transb_2(const float* a, const float* b, float* c, int n, int k) {
  const int col = blockIdx.x * blockDim.y + threadIdx.y, row = blockIdx.y, lane = threadIdx.x;
  float sum = 0;
  for (int p = lane; p < k; p += 32) sum += a[row * k + p] * b[col * k + p];
  sum = warp_sum(sum);
  if (lane == 0) c[row * n + col] = sum;
}

template <int kTile, int kWidth>
__device__ void tile(const float* a, const float* b, float* c, int n, int k) {
  __shared__ float a_tile[kTile][kTile], b_tile[kTile][kWidth];
  const int x = threadIdx.x, y = threadIdx.y;
  const int first_row = blockIdx.y * kTile, first_col = blockIdx.x * kTile;
  float sum = 0;
  for (int piece = 0; piece < k; piece += kTile) {
    a_tile[y][x] = a[(first_row + y) * k + piece + x];
    b_tile[y][x] = b[(first_col + y) * k + piece + x];
    __syncthreads();
    for (int p = 0; p < kTile; ++p) {
      const float other = b_tile[x][p];  // on its own line, so that its conflicts count alone
      sum += a_tile[y][p] * other;
    }
    __syncthreads();
  }
  c[(first_row + y) * n + first_col + x] = sum;
}
__global__ void matmul_transb_3(const float* a, const float* b, float* c, int n, int k) {
  tile<16, 16>(a, b, c, n, k);
}
__global__ void matmul_transb_4(const float* a, const float* b, float* c, int n, int k) {
  tile<32, 32>(a, b, c, n, k);
}
__global__ void matmul_transb_5(const float* a, const float* b, float* c, int n, int k) {
  tile<32, 33>(a, b, c, n, k);
}

struct Shape {
  int n_heads, n_kv_heads, head_dim, length;
  __device__ int width() const { return n_kv_heads * head_dim; }
  __device__ int first(int head) const { return head / (n_heads / n_kv_heads) * head_dim; }
};

__device__ float score(const float* q, const float* keys, Shape s, int head, int p) {
  float sum = 0;
  for (int i = 0; i < s.head_dim; ++i) {
    sum += q[head * s.head_dim + i] * keys[p * s.width() + s.first(head) + i];
  }
  return sum;
}

__global__ void attention_1(const float* q, const float* keys, const float* values, float* out,
                            Shape s) {
  const int head = threadIdx.x;
  float largest = -INFINITY, total = 0, mix[48] = {};
  for (int p = 0; p < s.length; ++p) largest = fmaxf(largest, score(q, keys, s, head, p));
  for (int p = 0; p < s.length; ++p) total += expf(score(q, keys, s, head, p) - largest);
  for (int p = 0; p < s.length; ++p) {
    const float weight = expf(score(q, keys, s, head, p) - largest) / total;
    for (int i = 0; i < s.head_dim; ++i) {
      mix[i] += weight * values[p * s.width() + s.first(head) + i];
    }
  }
  for (int i = 0; i < s.head_dim; ++i) out[head * s.head_dim + i] = mix[i];
}

__global__ void attention_2(const float* q, const float* keys, const float* values, float* out,
                            Shape s) {
  const int head = threadIdx.x;
  float largest = -INFINITY, total = 0, mix[48] = {};
  for (int p = 0; p < s.length; ++p) {
    const float now = score(q, keys, s, head, p), larger = fmaxf(largest, now);
    const float shrink = expf(largest - larger), weight = expf(now - larger);
    largest = larger;
    total = total * shrink + weight;
    for (int i = 0; i < s.head_dim; ++i) {
      mix[i] = mix[i] * shrink + weight * values[p * s.width() + s.first(head) + i];
    }
  }
  for (int i = 0; i < s.head_dim; ++i) out[head * s.head_dim + i] = mix[i] / total;
}

__global__ void attention_3(const float* q, const float* keys, const float* values, float* out,
                            Shape s) {
  const int head = blockIdx.x, lane = threadIdx.x;
  float largest = -INFINITY, total = 0, query[2] = {}, mix[2] = {};
  for (int i = lane; i < s.head_dim; i += 32) query[i / 32] = q[head * s.head_dim + i];
  for (int p = 0; p < s.length; ++p) {
    float now = 0;
    for (int i = lane; i < s.head_dim; i += 32) {
      now += query[i / 32] * keys[p * s.width() + s.first(head) + i];
    }
    now = warp_sum(now);
    const float larger = fmaxf(largest, now), shrink = expf(largest - larger), weight = expf(now - larger);
    largest = larger;
    total = total * shrink + weight;
    for (int i = lane; i < s.head_dim; i += 32) {
      mix[i / 32] = mix[i / 32] * shrink + weight * values[p * s.width() + s.first(head) + i];
    }
  }
  for (int i = lane; i < s.head_dim; i += 32) out[head * s.head_dim + i] = mix[i / 32] / total;
}

float* zeros(size_t count) {
  float* values;
  cudaMalloc(&values, count * sizeof(float));
  cudaMemset(values, 0, count * sizeof(float));
  return values;
}

int main() {
  float *x = zeros(64 * 192), *weight = zeros(192), *y = zeros(64 * 192);
  cuda_launch(rms_norm_1, {1, 64}, x, weight, y, 64, 192);
  cuda_launch(rms_norm_2, {8, dim3(32, 8)}, x, weight, y, 64, 192);

  float *a = zeros(64 * 32), *b = zeros(64 * 32), *c = zeros(64 * 64);
  cuda_launch(matmul_transb_1, {dim3(1, 64), 64}, a, b, c, 64, 32);
  cuda_launch(matmul_transb_2, {dim3(8, 64), dim3(32, 8)}, a, b, c, 64, 32);
  cuda_launch(matmul_transb_3, {dim3(4, 4), dim3(16, 16)}, a, b, c, 64, 32);
  cuda_launch(matmul_transb_4, {dim3(2, 2), dim3(32, 32)}, a, b, c, 64, 32);
  cuda_launch(matmul_transb_5, {dim3(2, 2), dim3(32, 32)}, a, b, c, 64, 32);

  const Shape shape{4, 2, 48, 96};
  float *q = zeros(4 * 48), *keys = zeros(96 * 96), *values = zeros(96 * 96), *out = zeros(4 * 48);
  cuda_launch(attention_1, {1, 4}, q, keys, values, out, shape);
  cuda_launch(attention_2, {1, 4}, q, keys, values, out, shape);
  cuda_launch(attention_3, {4, 32}, q, keys, values, out, shape);
}
