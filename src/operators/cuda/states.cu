// Steps that compute one token after the other, because each token changes the state of its
// sequence. Columns and heads do not depend on each other, so different threads compute them.
#include "operators/cuda/operators.h"
#include "operators/cuda/warp.h"
#include "operators/cuda/weights.h"
#include "operators/gated_delta.h"

namespace stagecraft::cuda {
namespace {

constexpr unsigned kThreads = 128;

__device__ inline float* of_token(const State& state, const Tokens& tokens, unsigned t) {
  return state.slots[tokens.sequences[t]].states + state.before;
}
__device__ inline float* row(const Rows& rows, unsigned t) {
  return rows.values + static_cast<size_t>(t) * rows.stride;
}

// One thread per column. With each token, the rows of the state move up by one.
__global__ void short_conv_kernel(Rows out, Rows in, DeviceMatrix taps, const float* bias,
                                  State state, Tokens tokens) {
  const unsigned column = blockIdx.x * kThreads + threadIdx.x, past = taps.inputs - 1;
  if (column >= out.width) return;
  for (unsigned t = 0; t < out.count; ++t) {
    float* before = of_token(state, tokens, t) + column;
    const float newest = row(in, t)[column];
    float sum = bias == nullptr ? 0.0f : bias[column];
    for (unsigned first = 0; first <= past; first += kPerLoad) {
      float some[kPerLoad] = {};  // zeros because g++ does not see that load8 is always called
      with_type(taps.type,
                [&](auto type) { load8<decltype(type)::value>(taps, column, first, some); });
      for (unsigned i = 0; i < kPerLoad && first + i <= past; ++i) {
        const unsigned j = first + i;
        const float x = j < past ? before[static_cast<size_t>(j) * in.width] : newest;
        if (j > 0) before[static_cast<size_t>(j - 1) * in.width] = x;
        sum = fmaf(some[i], x, sum);
      }
    }
    row(out, t)[column] = sum;
  }
}

// 1 / the length of a head, in every thread of the block.
__device__ inline float inverse_length(const float* head, unsigned size, float (&partial)[kWarp]) {
  float squares = 0.0f;
  for (unsigned i = threadIdx.x; i < size; i += blockDim.x) {
    squares = fmaf(head[i], head[i], squares);
  }
  return 1.0f / sqrtf(block_sum(squares, partial) + kDeltaEps);
}

// exp(-exp(rate) * softplus(decay)), where softplus(x) = log(1 + e^x): for large x, that is x.
__device__ inline float kept(float decay, float rate) {
  const float softplus = decay > 20.0f ? decay : log1pf(expf(decay));
  return expf(-expf(rate) * softplus);
}

// One block per head. In it, one thread per column of the head's matrix: no other thread reads or
// writes this column. See operators/gated_delta.h.
__global__ void gated_delta_kernel(Rows out, Rows in, Rows beta, Rows decay, DeltaOptions options,
                                   State state, Tokens tokens) {
  __shared__ float q_squares[kWarp], k_squares[kWarp];
  const unsigned head = blockIdx.x, n_heads = gridDim.x, keys = options.key_dim;
  const unsigned key_head =
      options.in_turn ? head % options.n_key_heads : head / (n_heads / options.n_key_heads);
  const unsigned width = out.width / n_heads, all_keys = options.n_key_heads * keys;
  for (unsigned t = 0; t < out.count; ++t) {
    const float* q = row(in, t) + key_head * keys;
    const float* k = q + all_keys;
    const float* v = row(in, t) + 2 * all_keys + head * width;
    float* matrix = of_token(state, tokens, t) + static_cast<size_t>(head) * keys * width;
    const float q_scale = inverse_length(q, keys, q_squares) / sqrtf(static_cast<float>(keys));
    const float k_scale = inverse_length(k, keys, k_squares);
    const float fades = kept(row(decay, t)[head] + options.shift[head], options.rate[head]);
    const float write_strength = 1.0f / (1.0f + expf(-row(beta, t)[head]));
    for (unsigned c = threadIdx.x; c < width; c += blockDim.x) {
      float known = 0.0f;
      for (unsigned i = 0; i < keys; ++i) {
        known = fmaf(k_scale * k[i], fades * matrix[i * width + c], known);
      }
      const float delta = write_strength * (v[c] - known);
      float sum = 0.0f;
      for (unsigned i = 0; i < keys; ++i) {
        const float number = fmaf(k_scale * k[i], delta, fades * matrix[i * width + c]);
        matrix[i * width + c] = number;
        sum = fmaf(q_scale * q[i], number, sum);
      }
      row(out, t)[head * width + c] = sum;
    }
    __syncthreads();  // before the next token overwrites q_squares and k_squares
  }
}

}  // namespace

void short_conv(Rows out, Rows in, DeviceMatrix taps, const float* bias, State state,
                Tokens tokens) {
  run_kernel(short_conv_kernel, {{pieces(out.width, kThreads)}, {kThreads}}, out, in, taps, bias,
             state, tokens);
}

// The number of threads depends only on the width of a head, because it determines the order in
// which a length is summed.
void gated_delta(Rows out, Rows in, Rows beta, Rows decay, DeltaOptions options, State state,
                 Tokens tokens) {
  const unsigned width = padded(out.width / beta.width);
  run_kernel(gated_delta_kernel, {{beta.width}, {width < kThreads ? width : kThreads}}, out, in,
             beta, decay, options, state, tokens);
}

}  // namespace stagecraft::cuda
