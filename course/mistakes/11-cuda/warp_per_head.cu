// Right: attention with a warp per query head.
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

void attention_on_gpu(const float* q, const float* keys, const float* values, float* out,
                      int n_heads, int n_kv_heads, int head_dim, int length, float scale) {
  const unsigned blocks = n_heads;
  cuda_launch(attend, {blocks, 32}, q, keys, values, out, n_heads, n_kv_heads, head_dim, length,
              scale);
}

}  // namespace stagecraft
