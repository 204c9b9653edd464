#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "operators/activation_function.h"

namespace stagecraft {

// How the CPU backend stores weights: in panels of 32 outputs. A kernel reads a panel in order,
// from its first byte to its last. panel_matrix.h draws the layouts.
enum class WeightLayout : std::uint8_t {
  F32,
  F16,
  BF16,         // activations stay f32
  RoundedBF16,  // the same bytes; activations are rounded to bf16 if that is faster
  Q8_0,         // this and those to IQ4_XS: types of GGUF files; activations are rounded to bytes
  Q4_0,
  Q4_1,
  Q5_0,
  Q5_1,
  IQ4_NL,
  MXFP4,
  Q2_K,
  Q3_K,
  Q4_K,
  Q5_K,
  Q6_K,
  IQ4_XS,
  Q8ByInput  // bytes multiplied with floats: only for the values of a KV cache, in no file
};
constexpr std::size_t kLayouts = static_cast<std::size_t>(WeightLayout::Q8ByInput) + 1;

constexpr std::size_t kPanelOutputs = 32;  // outputs per panel
constexpr std::size_t panels_of(std::size_t outputs) {
  return (outputs + kPanelOutputs - 1) / kPanelOutputs;
}
constexpr std::size_t kQuantBlock = 32;     // inputs that share a scale
constexpr std::size_t kMostTileRows = 256;  // the largest max_rows of all kernels

// The number format of the activations that a kernel multiplies with a panel.
enum class ActivationType : std::uint8_t { F32, BF16, Q8, Q8_K };
constexpr std::size_t kActivationTypes = 4;

// The sums of the bytes of a block: of all 32, and of the first 16.
struct BlockSums {
  std::int32_t all, first_half;
};

// A block of Q8_K: 256 activations that share a scale, and sums of their bytes.
struct alignas(64) Q8KBlock {
  static constexpr std::size_t kSize = 256;
  std::int8_t bytes[kSize];
  // Of each 16 bytes: the sum as a multiple of 16, and the rest. bf16 holds both exactly.
  std::uint16_t sums_as_bf16[kSize / 16][2];
  BlockSums sums[kSize / 32];
  float scale;
};

// Bytes of an element of TileArgs::rows.
constexpr std::size_t bytes_of(ActivationType type) {
  constexpr std::size_t kBytes[kActivationTypes] = {4, 2, 1, sizeof(Q8KBlock)};
  return kBytes[static_cast<std::size_t>(type)];
}

// How a loop prefetches weights that it reads from the first byte to the last
// (prefetch_ahead in matmul_tiles.h).
enum class Prefetch : std::uint8_t {
  None,        // the processor by itself prefetches better
  FromCaches,  // caches hold the model
  FromMemory,
};

// One panel times n_rows rows: out[r][o] = sum over k of rows[r][k] * panel[o][k], or += if `add`.
struct TileArgs {
  const std::byte* panel = nullptr;
  std::size_t inputs = 0;  // BF16: even; Q8_0 to MXFP4: a multiple of 32; Q2_K to IQ4_XS: of 256
  const void* rows = nullptr;  // float, bf16, int8 or Q8KBlock: the kernel's ActivationType
  std::size_t row_stride = 0;  // elements from row to row
  // For Q8 rows only, [n_rows][block_stride]: the scale of each block, and the sums of its bytes.
  const float* scales = nullptr;
  const BlockSums* sums = nullptr;
  std::size_t block_stride = 0;
  float* out = nullptr;        // [n_rows][32]
  std::size_t out_stride = 0;  // floats from row to row
  bool add = false;
  // Memory that is needed soon. A tile of several rows prefetches it: ahead_step bytes per input.
  const std::byte* ahead = nullptr;
  std::size_t ahead_step = 0;
  // Bytes from this panel to the panel that a tile of one row prefetches; 0: it prefetches its own
  // (prefetch_ahead).
  std::ptrdiff_t to_next = 0;
  Prefetch prefetch = Prefetch::None;
  // Only for one row, and with Kernels::two_panels: another panel that is multiplied at the same
  // time. Bytes from `panel` to it (0: none), and floats from `out` to its outputs.
  std::ptrdiff_t second = 0, second_out = 0;
};
using Tile = void (*)(const TileArgs&, std::size_t n_rows);

// Multiplies rows with the panels of one WeightLayout.
struct MatmulKernel {
  Tile tile;  // for 1 to max_rows rows; the bits of a row do not depend on the number of rows
  std::size_t max_rows;
  ActivationType activation_type;
};

// The gated delta rule (operators/gated_delta.h) for one token and up to 32 values of one head:
//   S = kept * S;  S += k (write_strength * (v - S^T k))^T;  out = S^T q
struct DeltaArgs {
  float* state;        // [n_keys][32]
  const float *q, *k;  // [n_keys], scaled
  std::size_t n_keys;
  float kept, write_strength;  // write_strength: sigmoid(beta)
  const float* v;              // [n_values]
  std::size_t n_values;
  float* out;  // [n_values]
};

// The operators of the CPU backend for one instruction set. The functions do not check sizes and
// allocate nothing. Rows may have any alignment.
struct Kernels {
  const char* name;  // "avx512_bf16"

  std::array<MatmulKernel, kLayouts> matmuls;  // indexed by WeightLayout
  const MatmulKernel& matmul(WeightLayout layout) const {
    return matmuls[static_cast<std::size_t>(layout)];
  }
  // The smallest number of rows of a panel that a thread gets.
  std::size_t min_rows_per_thread;
  // Whether one row is multiplied with two panels at a time (TileArgs::second). Then a thread reads
  // two streams of memory, and on some processors two are read faster than one.
  bool two_panels;

  // Rounds n floats to bf16, ties to even. A subnormal may become 0: kernels that multiply bf16
  // treat it as 0, too.
  void (*to_bf16)(const float* x, std::size_t n, std::uint16_t* out);
  // Rounds n floats to f16, ties to even. NaN stays NaN.
  void (*to_f16)(const float* x, std::size_t n, std::uint16_t* out);
  // Quantises n floats (a multiple of 32) in blocks of 32: scale = max |x| / 127, byte = x / scale,
  // rounded; the bytes are 0 if max |x| is below 1e-36. A block with a NaN or an infinity gets NaN
  // as its scale, and bytes of 0.
  void (*to_q8)(const float* x, std::size_t n, std::int8_t* bytes, float* scales, BlockSums* sums);
  // The same in blocks of 256 (n: a multiple of 256). Null if no kernel of the table needs it.
  void (*to_q8_k)(const float* x, std::size_t n, Q8KBlock* out);

  // out = weight * x / sqrt(mean(x^2) + eps); out may be x. A null weight is all 1.
  void (*rms_norm)(const float* x, const float* weight, std::size_t n, float eps, float* out);
  // out = weight * (x - mean(x)) / sqrt(variance(x) + eps) + bias; out may be x. A null weight is
  // all 1, a null bias all 0.
  void (*layer_norm)(const float* x, const float* weight, const float* bias, std::size_t n,
                     float eps, float* out);
  // out = scale * x / sqrt(sum(x^2) + eps); out may be x.
  void (*l2_norm)(const float* x, std::size_t n, float eps, float scale, float* out);
  void (*delta_rule)(const DeltaArgs& args);
  // The activation functions, indexed by ActivationFunction: out = f(gate) * up, or f(gate) if
  // up is null. out may be gate or up.
  //   silu(x) = x / (1 + e^-x),  gelu_tanh(x) = x / (1 + e^(-2 sqrt(2 / pi) (x + 0.044715 x^3)))
  //   gelu(x) = x / 2 * erfc(-x / sqrt(2)),  relu(x) = max(x, 0)
  //   sigmoid(x) = 1 / (1 + e^-x),  identity(x) = x
  using Activate = void (*)(const float* gate, const float* up, std::size_t n, float* out);
  std::array<Activate, kActivationFunctions> activate;
  // out = g / (1 + e^(-alpha g)) * (u + 1), with g and u as in operators/clamped_swiglu.h; out may
  // be gate or up itself.
  void (*clamped_swiglu)(const float* gate, const float* up, std::size_t n, float alpha,
                         float limit, float* out);
  // x[i] = cap * tanh(scale * x[i] / cap)
  void (*soft_cap)(float* x, std::size_t n, float scale, float cap);
  // x[i] = min(max(x[i], -limit), limit); NaN stays NaN
  void (*clip)(float* x, std::size_t n, float limit);
  // x[i] = scale * x[i] + slope * (first + i)
  void (*alibi)(float* x, std::size_t n, float scale, float slope, float first);
  // Rotates the pairs of x by the angles whose cos and sin are given, [half] each; out may be x.
  // Indexed by RopeStep::Pairs: a pair is (x[i], x[i + half]) or (x[2i], x[2i + 1]).
  void (*rope[2])(const float* x, const float* cos, const float* sin, std::size_t half, float* out);
  // x[i] += y[i]
  void (*add)(const float* y, std::size_t n, float* x);
  // x[i] += factor * y[i]
  void (*add_scaled)(float factor, const float* y, std::size_t n, float* x);
  // x[i] += y[i] * z[i]
  void (*add_product)(const float* y, const float* z, std::size_t n, float* x);

  // One block of online softmax (Milakov and Gimelshein 2018): scores[i] becomes
  // 2^(scores[i] * scale - max), where max is the largest scaled score so far, this block included.
  // With log2(e) as a factor of scale, these are the powers of e. (2^x takes fewer instructions.)
  // Updates *max and *sum, and returns the factor by which the caller must multiply its results of
  // earlier blocks. n is a multiple of 32. Masked scores are -infinity; at least one is not masked.
  float (*softmax_block)(float* scores, std::size_t n, float scale, float* max, float* sum);
  // x[i] *= factor
  void (*scale)(float factor, std::size_t n, float* x);

  // The sum of n numbers (a multiple of 128), to measure how fast memory can be read.
  float (*sum)(const float* x, std::size_t n, Prefetch prefetch);
  // The peak speed for rows of each ActivationType: multiply-adds on registers; `rounds` sets how
  // many. Returns the number of operations. *sink must be 1; the result is written to it, so that
  // the compiler cannot drop the loop.
  double (*peak[kActivationTypes])(std::size_t rounds, float* sink);
  // Rungs 0 to 2 of docs/kernels.md: the dot product of a and b. For benchmarks and tests only.
  float (*dot[3])(const float* a, const float* b, std::size_t n);
};

// The tables of all instruction sets that this program was compiled for. Only tests need it.
std::vector<const Kernels*> compiled_kernels();
// Of those, the ones that this processor and its operating system can run. The best one is last.
std::vector<const Kernels*> runnable_kernels();

// The kernels that this program uses: the fastest that this processor can run, or those that the
// environment variable STAGECRAFT_ISA names. Throws Error if this processor can run none of them,
// or cannot run the named ones.
const Kernels& kernels();

}  // namespace stagecraft
