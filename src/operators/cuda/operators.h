#pragma once

#include <cstddef>

// The steps of a plan (model/plan.h) on a GPU. Each function launches one kernel and returns at
// once. It is plain C++: only the .cu files need a CUDA compiler, or the emulator.
//
// Pointers are to memory of the GPU. What differs from token to token (ids, positions, which
// sequence) lies there too: the host decides nothing but the number of rows, so the launches of a
// pass can be recorded as a graph and repeated.
//
// A row's bits depend on no other row: each output is summed in one fixed order, and products and
// sums that could be contracted are written as fmaf.
namespace stagecraft::cuda {

// Each row of activations and weights begins at a multiple of this many numbers. The rest of a row
// is zero, so kernels read whole vectors without a case for the end.
inline constexpr unsigned kRowUnit = 32;
constexpr unsigned padded(std::size_t width) {
  return static_cast<unsigned>((width + kRowUnit - 1) / kRowUnit * kRowUnit);
}

// Activations: `count` rows of `width` numbers, `stride` from row to row.
struct Rows {
  float* values = nullptr;
  unsigned count = 0, width = 0, stride = 0;
};

// Weights in the number format in which a file stores them. Quantised ones keep their integers and
// scales; only the order of the bytes changes, so that a lane loads eight numbers at once:
//
//   F32, F16, BF16  values [outputs][stride]
//   Q8_0            values [outputs][stride] signed bytes, scales [outputs][stride / 32] f16
//   Q4_0            values [outputs][stride / 2]: two numbers per byte, the first in the low half
//                   and each + 8; scales as Q8_0
//   Q4_1            as Q4_0, numbers from 0; scales are pairs of f16: the scale, the minimum
enum class WeightType { F32, F16, BF16, Q8_0, Q4_0, Q4_1 };

struct DeviceMatrix {
  WeightType type = WeightType::F32;
  unsigned outputs = 0, inputs = 0, stride = 0;  // stride: numbers in a row, with the zeros
  const void* values = nullptr;
  const void* scales = nullptr;
};

// What is known of each row of a pass.
struct Tokens {
  const int* ids = nullptr;
  const int* positions = nullptr;
  const int* sequences = nullptr;  // indices of CacheSlots
};

// Keys and values of one sequence: cache by cache, [capacity][width] keys, then the values.
struct CacheSlot {
  void* values = nullptr;
  unsigned capacity = 0;
};
enum class CacheType { F32, F16 };
struct Cache {
  const CacheSlot* slots = nullptr;
  CacheType type = CacheType::F32;
  unsigned n_kv_heads = 0, head_dim = 0;
  unsigned before = 0;  // numbers per position in the caches before this one
};

// out[t] (+)= scale * table[index[t]]
void embed(Rows out, DeviceMatrix table, const int* index, float scale, bool add);

struct NormOptions {
  const float* weight = nullptr;  // may be null
  const float* bias = nullptr;    // may be null
  unsigned group = 0;             // numbers that are normed together
  bool own_weights = false;       // each group of a row has weights of its own
  bool centered = false;          // LayerNorm; else RMSNorm
  float eps = 0.0f;
};
void norm(Rows out, Rows in, NormOptions options);  // out may be in

// out = in * weight^T + bias; bias may be null
void linear(Rows out, Rows in, DeviceMatrix weight, const float* bias);

enum class Activation { Silu, GeluTanh, Gelu, Relu, Sigmoid, Identity };
void activate(Rows out, Rows gate, Rows up, Activation function);  // up.values may be null

void add(Rows x, Rows in, float scale);  // x += scale * in
// x *= scale, then cap * tanh(x / cap), then the clip; 0: none
void map(Rows x, float scale, float soft_cap, float clip);

struct RopeOptions {
  const float* frequencies = nullptr;
  unsigned n_frequencies = 0, head_dim = 0;
  bool neighbours = false;
};
void rope(Rows x, const int* positions, RopeOptions options);

void store(Cache cache, Rows k, Rows v, Tokens tokens);

inline constexpr std::size_t kMaxHeadDim = 256;
struct AttentionOptions {
  unsigned n_heads = 0, window = 0;
  float scale = 0.0f, soft_cap = 0.0f;
  const float* slopes = nullptr;  // [n_heads], may be null
};
void attention(Rows out, Rows q, Cache cache, Tokens tokens, AttentionOptions options);

// Scores of experts become shares: see RouteStep.
inline constexpr std::size_t kMaxExperts = 1024;
void route(Rows x, unsigned n_chosen, bool normed, bool sigmoid);

// Of each row, the experts with a share, in ascending order; -1 where there are fewer than
// per_row. chosen: [shares.count][per_row]
void list_experts(Rows shares, unsigned per_row, int* chosen);
// out[i] = in[i / rows_per_input] * experts[chosen[i]]^T, one row of out per entry of chosen.
void expert_linear(Rows out, Rows in, const DeviceMatrix* experts, const int* chosen,
                   unsigned rows_per_input);
// out[t] = sum of shares[t][e] * in[t * per_row + i], over the chosen experts e of row t
void combine_experts(Rows out, Rows in, Rows shares, unsigned per_row, const int* chosen);

void gather(Rows out, Rows in, const int* index);  // out[i] = in[index[i]]

}  // namespace stagecraft::cuda
