#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace stagecraft {

// How the CPU backend keeps weights: in panels of 32 outputs, each laid out so that a kernel reads
// it once, from its first byte to its last. panel_matrix.h draws the layouts.
enum class WeightLayout : std::uint8_t {
  F32,
  F16,
  BF16,         // multiplied with activations as they are
  RoundedBF16,  // the same weights; activations are rounded to bf16 where that is faster
  Q8,
  Q4,
  Q4_1,  // this and the next four: GGUF's
  Q4_K,
  Q5_K,
  Q6_K,
  IQ4_XS,
  Q8ByInput  // bytes multiplied with floats: in no file, but the values of a cache may be
};
constexpr std::size_t kLayouts = 12;

constexpr std::size_t kPanelOutputs = 32;  // outputs per panel
constexpr std::size_t kQuantBlock = 32;    // inputs that share a scale
constexpr std::size_t kTileRows = 96;      // the most rows that any kernel takes

// The number format of the activations that a kernel multiplies with a panel.
enum class ActivationType : std::uint8_t { F32, BF16, Q8 };

// The sums of a block's bytes: of all 32, and of the first 16.
struct BlockSums {
  std::int32_t all, first_half;
};

// One panel times some rows: out[r][o] = sum over k of rows[r][k] * panel[o][k], or += that.
struct TileArgs {
  const std::byte* panel = nullptr;
  std::size_t inputs = 0;      // BF16: even; Q8, Q4, Q4_1: a multiple of 32; K-quants: of 256
  const void* rows = nullptr;  // float, bf16 or int8, as the kernel's ActivationType says
  std::size_t row_stride = 0;  // elements from row to row
  // Of Q8 rows: [rows][block_stride], what a byte is multiplied with, and the sums of the bytes.
  const float* scales = nullptr;
  const BlockSums* sums = nullptr;
  std::size_t block_stride = 0;
  float* out = nullptr;        // [n][32]
  std::size_t out_stride = 0;  // floats from row to row
  bool add = false;
  // Memory that is needed soon: ahead_step bytes of it are prefetched per input.
  const std::byte* ahead = nullptr;
  std::size_t ahead_step = 0;
  // Or what lies so many bytes behind the panel, as far as the panel reaches; 0: nothing.
  std::ptrdiff_t to_next = 0;
};
using Tile = void (*)(const TileArgs&, std::size_t n_rows);

// The gated delta rule (operators/gated_delta.h) for one token and up to 32 values of one head:
//   S = kept * S;  S += k (learned * (v - S^T k))^T;  out = S^T q
struct DeltaArgs {
  float* state;        // [n_keys][32]
  const float *q, *k;  // [n_keys], scaled
  std::size_t n_keys;
  float kept, learned;
  const float* v;  // [n_values]
  std::size_t n_values;
  float* out;  // [n_values]
};

// The operators of the CPU backend for one instruction set. The caller checks sizes; nothing is
// allocated; rows may be read and written at any alignment.
struct Kernels {
  const char* name;  // "avx512_bf16"

  // tile[layout] multiplies 1 to max_rows[layout] rows. The bits of a row do not depend on how many
  // come along.
  Tile tile[kLayouts];
  std::size_t max_rows[kLayouts];
  // So many rows of a panel are a thread's smallest share: a multiple of every max_rows.
  std::size_t rows_per_share;
  ActivationType activation_type[kLayouts];

  // Rounds n floats to bf16, to nearest even. A denormal may become 0: a kernel that multiplies
  // bf16 takes it for 0.
  void (*to_bf16)(const float* x, std::size_t n, std::uint16_t* out);
  // Quantises n floats (a multiple of 32) by blocks of 32: scale = max |x| / 127, byte = x / scale.
  // A block in which not all are finite gets NaN for its scale, and bytes of 0.
  void (*to_q8)(const float* x, std::size_t n, std::int8_t* bytes, float* scales, BlockSums* sums);

  // out = weight * x / sqrt(mean(x^2) + eps); out may be x. Where weight is nullptr it is all 1.
  void (*rms_norm)(const float* x, const float* weight, std::size_t n, float eps, float* out);
  // out = weight * (x - mean(x)) / sqrt(variance(x) + eps) + bias; out may be x. Where weight is
  // nullptr it is all 1, and bias all 0.
  void (*layer_norm)(const float* x, const float* weight, const float* bias, std::size_t n,
                     float eps, float* out);
  // out = scale * x / sqrt(sum(x^2) + eps); out may be x.
  void (*l2_norm)(const float* x, std::size_t n, float eps, float scale, float* out);
  void (*delta_rule)(const DeltaArgs& args);
  // The activations, by ActivateStep::Function: out = f(gate) * up; out may be either. Where up is
  // nullptr, out = f(gate).
  //   silu(x) = x / (1 + e^-x),  gelu_tanh(x) = x / (1 + e^(-2 sqrt(2 / pi) (x + 0.044715 x^3)))
  //   gelu(x) = x / 2 * erfc(-x / sqrt(2)),  relu(x) = max(x, 0)
  //   sigmoid(x) = 1 / (1 + e^-x),  identity(x) = x
  void (*activate[6])(const float* gate, const float* up, std::size_t n, float* out);
  // out = g / (1 + e^(-alpha g)) * (u + 1), with g and u as in operators/clamped_swiglu.h; out may
  // be gate or up itself.
  void (*clamped_swiglu)(const float* gate, const float* up, std::size_t n, float alpha,
                         float limit, float* out);
  // x[i] = cap * tanh(scale * x[i] / cap)
  void (*soft_cap)(float* x, std::size_t n, float scale, float cap);
  // x[i] = -limit or limit where it is beyond them
  void (*clip)(float* x, std::size_t n, float limit);
  // x[i] = scale * x[i] + slope * (first + i)
  void (*alibi)(float* x, std::size_t n, float scale, float slope, float first);
  // out = x with its pairs rotated by the angles whose cos and sin are given, [half] each; out may
  // be x. By RopeStep::Pairs: (x[i], x[i + half]), or (x[2i], x[2i + 1]).
  void (*rope[2])(const float* x, const float* cos, const float* sin, std::size_t half, float* out);
  // x[i] += y[i]
  void (*add)(const float* y, std::size_t n, float* x);
  // x[i] += factor * y[i]
  void (*add_scaled)(float factor, const float* y, std::size_t n, float* x);
  // x[i] += y[i] * z[i]
  void (*add_product)(const float* y, const float* z, std::size_t n, float* x);

  // One block of online softmax (Milakov and Gimelshein 2018): scores[i] becomes
  // e^(scores[i] * scale - max) and its sum is added to `sum`, where max is the largest so far,
  // this block's included. Returns what everything summed before has to be multiplied with.
  // n is a multiple of 32; masked scores are -infinity, and not all of them are masked.
  float (*softmax_block)(float* scores, std::size_t n, float scale, float* max, float* sum);
  // x[i] *= factor
  void (*scale)(float factor, std::size_t n, float* x);

  // The sum of n numbers, a multiple of 128: how fast memory can be read.
  float (*sum)(const float* x, std::size_t n);
  // What the processor does at most for rows of each type: multiply-adds on registers, `rounds`
  // times some. Returns how many operations that was; *sink (1 before) keeps the compiler honest.
  double (*peak[3])(std::size_t rounds, float* sink);
  // Rungs 0 to 2 of docs/kernels.md, one number of a product each: only measured, and tested.
  float (*dot[3])(const float* a, const float* b, std::size_t n);
};

// The tables of all instruction sets that this program was compiled for, and those of them that
// this processor and its system can run; the best one last.
std::vector<const Kernels*> compiled_kernels();
std::vector<const Kernels*> runnable_kernels();

// The kernels that this program uses: the fastest of them here, or those that STAGECRAFT_ISA in the
// environment names. Throws Error if it names none, or one that this processor cannot run.
const Kernels& kernels();

}  // namespace stagecraft
