// Steps in which each number is computed by itself. A thread computes one number, one pair, or
// eight neighbouring numbers.
#include "operators/cuda/halves.h"
#include "operators/cuda/rotate.h"
#include "operators/cuda/warp.h"

namespace stagecraft::cuda {
namespace {

constexpr unsigned kThreads = 128;

LaunchShape one_thread_each(const Rows& rows) {
  return {{pieces(rows.width, kThreads), rows.count}, {kThreads}};
}

__device__ inline unsigned column() { return blockIdx.x * kThreads + threadIdx.x; }
__device__ inline float* row(const Rows& rows) {
  return rows.values + static_cast<size_t>(blockIdx.y) * rows.stride;
}

__device__ inline float apply(ActivationFunction function, float x) {
  switch (function) {
    case ActivationFunction::Silu:
      return x / (1.0f + expf(-x));
    case ActivationFunction::GeluTanh:
      // x / 2 * (1 + tanh(y)), which would lose all digits for x < 0
      return x / (1.0f + expf(-2.0f * 0.7978845608f * (x + 0.044715f * x * x * x)));
    case ActivationFunction::Gelu:
      return 0.5f * x * erfcf(-x * 0.70710678f);  // 1 + erff loses all digits for x < 0
    case ActivationFunction::Relu:
      return x < 0.0f ? 0.0f : x;  // unlike fmaxf, keeps NaN
    case ActivationFunction::Sigmoid:
      return 1.0f / (1.0f + expf(-x));
    case ActivationFunction::Identity:
      return x;
  }
  return x;
}

__global__ void activate_kernel(Rows out, Rows gate, Rows up, ActivationFunction function) {
  const unsigned i = column();
  if (i >= out.width) return;
  const float value = apply(function, row(gate)[i]);
  row(out)[i] = up.values == nullptr ? value : value * row(up)[i];
}

// One block per row; the row is also rounded. A thread computes eight neighbouring columns, as in
// round_row().
__global__ void activate_row_kernel(Rows out, Rows gate, Rows up, ActivationFunction function,
                                    HalfRows halves) {
  __shared__ float maxima[kWarp];
  const size_t t = blockIdx.x;
  float* to = out.values + t * out.stride;
  float largest = 0.0f;
  for (unsigned i = threadIdx.x * kPerLoad; i < out.width; i += blockDim.x * kPerLoad) {
    float values[kPerLoad], factors[kPerLoad];
    load8(gate.values + t * gate.stride + i, values);
    if (up.values != nullptr) load8(up.values + t * up.stride + i, factors);
#pragma unroll
    for (unsigned j = 0; j < kPerLoad; ++j) {
      float value = apply(function, values[j]);
      if (up.values != nullptr) value *= factors[j];
      values[j] = i + j < out.width ? value : 0.0f;  // the padding of a row stays zero
      largest = fmaxf(largest, fabsf(values[j]));
    }
    store8(to + i, values);
  }
  round_row(halves, blockIdx.x, to, largest, maxima);
}

__global__ void clamped_swiglu_kernel(Rows gate, Rows up, float alpha, float limit) {
  const unsigned i = column();
  if (i >= gate.width) return;
  float g = row(gate)[i], u = row(up)[i];
  g = g > limit ? limit : g;  // unlike fminf, keeps NaN
  u = u < -limit ? -limit : u > limit ? limit : u;
  row(gate)[i] = g / (1.0f + expf(-alpha * g)) * (u + 1.0f);
}

__global__ void add_kernel(Rows x, Rows in, float scale) {
  const unsigned i = column();
  if (i < x.width) row(x)[i] = fmaf(scale, row(in)[i], row(x)[i]);
}

__global__ void map_kernel(Rows x, MapOptions options) {
  const unsigned i = column();
  if (i >= x.width) return;
  const float soft_cap = options.soft_cap, clip = options.clip;
  float value = options.scale * row(x)[i];
  if (options.by != nullptr) value *= options.by[options.by_columns ? i : 0];
  if (soft_cap != 0.0f) value = soft_cap * tanhf(value / soft_cap);
  if (clip != 0.0f) value = value < -clip ? -clip : value > clip ? clip : value;
  row(x)[i] = value;
}

__global__ void join_kernel(Rows out, Rows a, Rows b, unsigned n_heads) {
  const unsigned i = column();
  if (i >= out.width) return;
  const unsigned a_head = a.width / n_heads, b_head = b.width / n_heads;
  const unsigned head = i / (a_head + b_head), at = i % (a_head + b_head);
  row(out)[i] = at < a_head ? row(a)[head * a_head + at] : row(b)[head * b_head + at - a_head];
}

// One thread per pair of numbers. No other thread reads or writes this pair.
__global__ void rope_kernel(Rows q, Rows k, const int* positions, RopeOptions options) {
  const Rows x = blockIdx.z == 0 ? q : k;
  const unsigned i = column(), n = options.n_frequencies;
  if (i >= x.width / options.head_dim * n) return;
  rotate(row(x) + i / n * options.head_dim, i % n, positions[blockIdx.y], options);
}

}  // namespace

void activate(Rows out, Rows gate, Rows up, ActivationFunction function, HalfRows halves) {
  if (halves.values != nullptr) {
    const unsigned threads = pieces(pieces(out.width, kPerLoad), kWarp) * kWarp;
    return run_kernel(activate_row_kernel, {{out.count}, {threads < 1024 ? threads : 1024}}, out,
                      gate, up, function, halves);
  }
  run_kernel(activate_kernel, one_thread_each(out), out, gate, up, function);
}

void clamped_swiglu(Rows gate, Rows up, float alpha, float limit) {
  run_kernel(clamped_swiglu_kernel, one_thread_each(gate), gate, up, alpha, limit);
}

void add(Rows x, Rows in, float scale) { run_kernel(add_kernel, one_thread_each(x), x, in, scale); }

void map(Rows x, MapOptions options) { run_kernel(map_kernel, one_thread_each(x), x, options); }

void join(Rows out, Rows a, Rows b, unsigned n_heads) {
  run_kernel(join_kernel, one_thread_each(out), out, a, b, n_heads);
}

void rope(Rows q, Rows k, const int* positions, RopeOptions options) {
  LaunchShape shape = one_thread_each(q.width > k.width ? q : k);
  if (k.values != nullptr) shape.grid.z = 2;
  run_kernel(rope_kernel, shape, q, k, positions, options);
}

}  // namespace stagecraft::cuda
