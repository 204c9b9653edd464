// Stores keys and values in the cache. Computes attention over the positions that each token sees.
#include "operators/cuda/cache.h"
#include "operators/cuda/tensor_attention.h"
#include "operators/cuda/warp.h"
#include "operators/cuda/weights.h"

namespace stagecraft::cuda {
namespace {

constexpr unsigned kThreads = 128;
constexpr unsigned kWarps = 4;

__device__ inline float number(const float* head, unsigned column) { return head[column]; }
__device__ inline float number(const __half* head, unsigned column) {
  return __half2float(head[column]);
}
__device__ inline float number(const BlockQ8_0* head, unsigned column) {
  const BlockQ8_0& block = head[column / kWarp];
  return f16_to_f32(block.scale) * static_cast<float>(block.q[column % kWarp]);
}

__device__ inline void assign(float& to, float value) { to = value; }
__device__ inline void assign(__half& to, float value) { to = __float2half(value); }

template <class T>
__global__ void store_kernel(Cache cache, Rows k, Rows v, Tokens tokens) {
  const unsigned column = blockIdx.x * kThreads + threadIdx.x, t = blockIdx.y;
  if (column >= k.width) return;
  const int sequence = tokens.sequences[t];
  const size_t at = static_cast<size_t>(tokens.positions[t]) * k.width + column;
  assign(cached<T>(cache, sequence, 0)[at], k.values[static_cast<size_t>(t) * k.stride + column]);
  assign(cached<T>(cache, sequence, 1)[at], v.values[static_cast<size_t>(t) * v.stride + column]);
}

// Rounds 32 neighbouring numbers to bytes that share a scale: the largest absolute value becomes
// 127. The first warp rounds a block of the key, the second warp the same block of the value. If a
// number is NaN or infinite, the scale becomes NaN.
__global__ void store_blocks_kernel(Cache cache, Rows k, Rows v, Tokens tokens) {
  const unsigned which = threadIdx.x / kWarp, lane = threadIdx.x % kWarp, t = blockIdx.y;
  const unsigned n_blocks = per_head<BlockQ8_0>(cache);
  const unsigned head = blockIdx.x / n_blocks, column = blockIdx.x % n_blocks * kWarp + lane;
  const Rows& from = which == 0 ? k : v;
  const float* row = from.values + static_cast<size_t>(t) * from.stride;
  const float value = column < cache.head_dim ? row[head * cache.head_dim + column] : 0.0f;
  const float largest = warp_max(fabsf(value));
  const bool finite = __all_sync(kAllLanes, fabsf(value) <= 3.4028235e38f);
  const float inverse = finite && largest > 0.0f ? 127.0f / largest : 0.0f;
  const size_t position = static_cast<size_t>(tokens.positions[t]);
  BlockQ8_0& block = cached<BlockQ8_0>(cache, tokens.sequences[t],
                                       which)[position * cache.n_kv_heads * n_blocks + blockIdx.x];
  block.q[lane] = finite ? static_cast<signed char>(rintf(value * inverse)) : 0;
  const float scale = finite ? largest / 127.0f : NAN;
  if (lane == 0) block.scale = __half_as_ushort(__float2half(scale));
}

// One block per query head and row. Warp w attends to every kWarps-th position. It reads its
// positions once and keeps a softmax of the positions so far (online softmax, Milakov and
// Gimelshein 2018):
//
//   largest  the largest score
//   sum      the sum of e^(score - largest)
//   mix      the sum of e^(score - largest) * value; lane l holds columns l, l + 32, ...
//
// If a score is larger than `largest`, sum and mix are first multiplied by e^(largest - score). At
// the end, the results of the warps are added in the same way. Which warp reads which position
// depends only on the position of the query.
template <class T, unsigned kColumns>
__global__ void attention_kernel(Rows out, Rows q, Cache cache, Tokens tokens,
                                 AttentionOptions options) {
  __shared__ float maxima[kWarps], sums[kWarps], mixes[kWarps][kColumns * kWarp];
  const unsigned warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  const unsigned head = blockIdx.x, t = blockIdx.y, n = cache.head_dim;
  const unsigned kv_head = head / (options.n_heads / cache.n_kv_heads);
  const unsigned head_size = per_head<T>(cache), width = cache.n_kv_heads * head_size;
  const int sequence = tokens.sequences[t];
  const T* keys = cached<T>(cache, sequence, 0) + kv_head * head_size;
  const T* values = cached<T>(cache, sequence, 1) + kv_head * head_size;
  const float slope = options.slopes == nullptr ? 0.0f : options.slopes[head];

  const float* from = q.values + static_cast<size_t>(t) * q.stride + head * n;
  float query[kColumns], mix[kColumns];
#pragma unroll
  for (unsigned i = 0; i < kColumns; ++i) {
    const unsigned column = lane + i * kWarp;
    query[i] = column < n ? from[column] : 0.0f;
    mix[i] = 0.0f;
  }

  const unsigned position = static_cast<unsigned>(tokens.positions[t]);
  const bool cut = options.window != 0 && position >= options.window;
  const unsigned first = cut ? position - options.window + 1 : 0;
  float largest = -INFINITY, sum = 0.0f;
  if (options.sinks != nullptr && warp == 0) {  // a score without a value
    largest = options.sinks[head];
    sum = 1.0f;
  }
  const auto seen = static_cast<unsigned>(tokens.seen[t]);
  for (unsigned p = first + warp; p < seen; p += kWarps) {
    const T* key = keys + static_cast<size_t>(p) * width;
    const T* value = values + static_cast<size_t>(p) * width;
    float score = 0.0f;
#pragma unroll
    for (unsigned i = 0; i < kColumns; ++i) {
      const unsigned column = lane + i * kWarp;
      if (column < n) score = fmaf(query[i], number(key, column), score);
    }
    score = options.scale * warp_sum(score);
    if (options.soft_cap != 0.0f) score = options.soft_cap * tanhf(score / options.soft_cap);
    score = fmaf(slope, static_cast<float>(p) - static_cast<float>(position), score);

    const float max = fmaxf(largest, score);
    const float factor = expf(largest - max), term = expf(score - max);
    largest = max;
    sum = fmaf(sum, factor, term);
#pragma unroll
    for (unsigned i = 0; i < kColumns; ++i) {
      const unsigned column = lane + i * kWarp;
      if (column < n) mix[i] = fmaf(term, number(value, column), mix[i] * factor);
    }
  }

  if (lane == 0) maxima[warp] = largest, sums[warp] = sum;
#pragma unroll
  for (unsigned i = 0; i < kColumns; ++i) mixes[warp][lane + i * kWarp] = mix[i];
  __syncthreads();

  // A warp without positions has the maximum -infinity, and so the factor 0.
  float max = -INFINITY, total = 0.0f, factors[kWarps];
#pragma unroll
  for (unsigned w = 0; w < kWarps; ++w) max = fmaxf(max, maxima[w]);
#pragma unroll
  for (unsigned w = 0; w < kWarps; ++w) {
    factors[w] = expf(maxima[w] - max);
    total = fmaf(sums[w], factors[w], total);
  }
  float* to = out.values + static_cast<size_t>(t) * out.stride + head * n;
  for (unsigned column = threadIdx.x; column < n; column += kThreads) {
    float mixed = 0.0f;
#pragma unroll
    for (unsigned w = 0; w < kWarps; ++w) mixed = fmaf(mixes[w][column], factors[w], mixed);
    to[column] = mixed / total;
  }
}

template <class T>
void launch_attention(Rows out, Rows q, const Cache& cache, Tokens tokens,
                      const AttentionOptions& options) {
  const auto launch = [&](auto kernel) {
    run_kernel(kernel, {{options.n_heads, q.count}, {kThreads}}, out, q, cache, tokens, options);
  };
  if (cache.head_dim <= kWarp) return launch(attention_kernel<T, 1>);
  if (cache.head_dim <= 2 * kWarp) return launch(attention_kernel<T, 2>);
  if (cache.head_dim <= 4 * kWarp) return launch(attention_kernel<T, 4>);
  if (cache.head_dim <= 8 * kWarp) return launch(attention_kernel<T, 8>);
  launch(attention_kernel<T, kMaxHeadDim / kWarp>);
}

}  // namespace

void store(Cache cache, Rows k, Rows v, Tokens tokens) {
  if (cache.type == CacheType::Q8_0) {
    const unsigned blocks = cache.n_kv_heads * pieces(cache.head_dim, kWarp);
    run_kernel(store_blocks_kernel, {{blocks, k.count}, {2 * kWarp}}, cache, k, v, tokens);
    return;
  }
  const LaunchShape shape{{pieces(k.width, kThreads), k.count}, {kThreads}};
  const bool halves = cache.type == CacheType::F16;
  run_kernel(halves ? store_kernel<__half> : store_kernel<float>, shape, cache, k, v, tokens);
}

void attention(Rows out, Rows q, Cache cache, Tokens tokens, AttentionOptions options) {
  if (options.tensor_cores && has_tensor_attention(cache)) {
    return tensor_attention(out, q, cache, tokens, options);
  }
  if (cache.type == CacheType::F16) return launch_attention<__half>(out, q, cache, tokens, options);
  if (cache.type == CacheType::Q8_0) {
    return launch_attention<BlockQ8_0>(out, q, cache, tokens, options);
  }
  launch_attention<float>(out, q, cache, tokens, options);
}

}  // namespace stagecraft::cuda
