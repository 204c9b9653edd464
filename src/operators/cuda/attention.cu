// Rotates queries and keys, and stores keys and values in the cache. Computes attention over the
// positions that each token sees.
#include <type_traits>

#include "operators/cuda/cache.h"
#include "operators/cuda/rotate.h"
#include "operators/cuda/tensor_attention.h"
#include "operators/cuda/warp.h"
#include "operators/cuda/weights.h"

namespace stagecraft::cuda {
namespace {

constexpr unsigned kThreads = 128, kStoreThreads = 64;
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

// Rounds 32 neighbouring numbers to bytes that share a scale: the largest absolute value becomes
// 127. A warp rounds a block. If a number is NaN or infinite, the scale becomes NaN.
__device__ inline void round_block(BlockQ8_0& block, float value) {
  const unsigned lane = threadIdx.x % kWarp;
  const float largest = warp_max(fabsf(value));
  const bool finite = __all_sync(kAllLanes, fabsf(value) <= 3.4028235e38f);
  const float inverse = finite && largest > 0.0f ? 127.0f / largest : 0.0f;
  block.q[lane] = finite ? static_cast<signed char>(rintf(value * inverse)) : 0;
  const float scale = finite ? largest / 127.0f : NAN;
  if (lane == 0) block.scale = __half_as_ushort(__float2half(scale));
}

// Writes a head into the cache. Called by all threads of a block.
template <class T>
__device__ inline void store_head(T* to, const float* from, unsigned n) {
  if constexpr (std::is_same_v<T, BlockQ8_0>) {
    for (unsigned i = threadIdx.x / kWarp; i * kWarp < n; i += kStoreThreads / kWarp) {
      const unsigned column = i * kWarp + threadIdx.x % kWarp;
      round_block(to[i], column < n ? from[column] : 0.0f);
    }
  } else {
    for (unsigned i = threadIdx.x; i < n; i += kStoreThreads) assign(to[i], from[i]);
  }
}

// One block per head and row: first the heads of q, then those of k, together with those of v.
// Without frequencies, nothing is rotated.
template <class T>
__global__ void store_kernel(Cache cache, Rows q, Rows k, Rows v, Tokens tokens,
                             const int* positions, RopeOptions options) {
  const unsigned t = blockIdx.y, n = cache.head_dim, n_query_heads = q.width / n;
  const bool is_query = blockIdx.x < n_query_heads;
  const unsigned head = is_query ? blockIdx.x : blockIdx.x - n_query_heads;
  const Rows& x = is_query ? q : k;
  float* rotated = x.values + static_cast<size_t>(t) * x.stride + head * n;
  for (unsigned pair = threadIdx.x; pair < options.n_frequencies; pair += kStoreThreads) {
    rotate(rotated, pair, positions[t], options);
  }
  if (is_query) return;
  __syncthreads();  // each thread stores numbers that others have rotated
  const size_t width = per_head<T>(cache);
  const size_t at = (static_cast<size_t>(tokens.positions[t]) * cache.n_kv_heads + head) * width;
  const float* value = v.values + static_cast<size_t>(t) * v.stride + head * n;
  store_head(cached<T>(cache, tokens.sequences[t], 0) + at, rotated, n);
  store_head(cached<T>(cache, tokens.sequences[t], 1) + at, value, n);
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
  rope_and_store(cache, {}, k, v, tokens, nullptr, {});
}

void rope_and_store(Cache cache, Rows q, Rows k, Rows v, Tokens tokens, const int* positions,
                    RopeOptions options) {
  const LaunchShape shape{{q.width / cache.head_dim + cache.n_kv_heads, k.count}, {kStoreThreads}};
  const auto launch = [&](auto kernel) {
    run_kernel(kernel, shape, cache, q, k, v, tokens, positions, options);
  };
  if (cache.type == CacheType::F16) return launch(store_kernel<__half>);
  if (cache.type == CacheType::Q8_0) return launch(store_kernel<BlockQ8_0>);
  launch(store_kernel<float>);
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
