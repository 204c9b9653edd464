// The cache of keys and values, and causal attention over it.
#include "operators/cuda/operators.h"
#include "operators/cuda/warp.h"

namespace stagecraft::cuda {
namespace {

constexpr unsigned kThreads = 128;
constexpr unsigned kWarps = 4;

__device__ inline float to_f32(float value) { return value; }
__device__ inline float to_f32(__half value) { return __half2float(value); }
__device__ inline void assign(float& to, float value) { to = value; }
__device__ inline void assign(__half& to, float value) { to = __float2half(value); }

// The keys (which = 0) or values (1) of all positions of a sequence.
template <class T>
__device__ inline T* cached(const Cache& cache, int sequence, unsigned which) {
  const CacheSlot slot = cache.slots[sequence];
  const unsigned width = cache.n_kv_heads * cache.head_dim;
  return static_cast<T*>(slot.values) +
         static_cast<size_t>(slot.capacity) * (cache.before + which * width);
}

template <class T>
__global__ void store_kernel(Cache cache, Rows k, Rows v, Tokens tokens) {
  const unsigned column = blockIdx.x * kThreads + threadIdx.x, t = blockIdx.y;
  if (column >= k.width) return;
  const int sequence = tokens.sequences[t];
  const size_t at = static_cast<size_t>(tokens.positions[t]) * k.width + column;
  assign(cached<T>(cache, sequence, 0)[at], k.values[static_cast<size_t>(t) * k.stride + column]);
  assign(cached<T>(cache, sequence, 1)[at], v.values[static_cast<size_t>(t) * v.stride + column]);
}

// A block per query head and row; its warps share out the positions. Each warp goes through its
// positions once and keeps a softmax of what it has seen so far (online softmax, Milakov and
// Gimelshein 2018):
//
//   max    the largest score
//   sum    of e^(score - max)
//   mix    of e^(score - max) * value; lane l holds columns l, l + 32, ... of the head
//
// A larger score than max makes all terms before it smaller by the same factor, e^(max - score).
// At the end the warps' parts are added in the same way. Which warp sees which position follows
// from the query's position alone.
template <class T, unsigned kColumns>
__global__ void attention_kernel(Rows out, Rows q, Cache cache, Tokens tokens,
                                 AttentionOptions options) {
  __shared__ float maxima[kWarps], sums[kWarps], mixes[kWarps][kColumns * kWarp];
  const unsigned warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  const unsigned head = blockIdx.x, t = blockIdx.y, n = cache.head_dim;
  const unsigned kv_head = head / (options.n_heads / cache.n_kv_heads);
  const unsigned width = cache.n_kv_heads * n;
  const int sequence = tokens.sequences[t];
  const T* keys = cached<T>(cache, sequence, 0) + kv_head * n;
  const T* values = cached<T>(cache, sequence, 1) + kv_head * n;
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
  for (unsigned p = first + warp; p <= position; p += kWarps) {
    const T* key = keys + static_cast<size_t>(p) * width;
    const T* value = values + static_cast<size_t>(p) * width;
    float score = 0.0f;
#pragma unroll
    for (unsigned i = 0; i < kColumns; ++i) {
      const unsigned column = lane + i * kWarp;
      if (column < n) score = fmaf(query[i], to_f32(key[column]), score);
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
      if (column < n) mix[i] = fmaf(term, to_f32(value[column]), mix[i] * factor);
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
    cuda_launch(kernel, {{options.n_heads, q.count}, {kThreads}}, out, q, cache, tokens, options);
  };
  if (cache.head_dim <= kWarp) return launch(attention_kernel<T, 1>);
  if (cache.head_dim <= 2 * kWarp) return launch(attention_kernel<T, 2>);
  if (cache.head_dim <= 4 * kWarp) return launch(attention_kernel<T, 4>);
  launch(attention_kernel<T, kMaxHeadDim / kWarp>);
}

}  // namespace

void store(Cache cache, Rows k, Rows v, Tokens tokens) {
  const LaunchShape shape{{blocks_for(k.width, kThreads), k.count}, {kThreads}};
  const bool halves = cache.type == CacheType::F16;
  cuda_launch(halves ? store_kernel<__half> : store_kernel<float>, shape, cache, k, v, tokens);
}

void attention(Rows out, Rows q, Cache cache, Tokens tokens, AttentionOptions options) {
  if (cache.type == CacheType::F16) return launch_attention<__half>(out, q, cache, tokens, options);
  launch_attention<float>(out, q, cache, tokens, options);
}

}  // namespace stagecraft::cuda
