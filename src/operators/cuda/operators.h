#pragma once

#include <cstddef>

#include "operators/q8_0.h"

// The steps of a plan (model/plan.h) on a GPU. Each function launches one kernel and returns at
// once. This header is plain C++: only the .cu files need a CUDA compiler, or the emulator.
//
// All pointers point to memory of the GPU. What differs from token to token (ids, positions,
// sequences) is there too, and the host decides only the number of rows. The launches of a pass can
// therefore be recorded as a graph and repeated.
//
// A row's bits do not depend on other rows. Each output is summed in one fixed order. Where a
// compiler might join a product and a sum in one kernel only, they are written as fmaf.
namespace stagecraft::cuda {

// Each row of activations and weights begins at a multiple of kRowUnit numbers. The rest of a row
// is zero, so kernels read whole vectors without a special case for the end.
inline constexpr unsigned kRowUnit = 32;
constexpr unsigned padded(std::size_t width) {
  return static_cast<unsigned>((width + kRowUnit - 1) / kRowUnit * kRowUnit);
}

// Activations: `count` rows of `width` numbers. Row i begins at values + i * stride.
struct Rows {
  float* values = nullptr;
  unsigned count = 0, width = 0, stride = 0;
};

// Weights in the number format of the file; formats that are not listed here are stored as one that
// is (see type_of in device_weights.cpp). Quantised weights keep their integers and scales. Only
// the order of the bytes changes, so that a lane (a thread of a warp) loads eight numbers at once:
//
//   F32, F16, BF16  values [outputs][stride]
//   Q8_0            values [outputs][stride] signed bytes, scales [outputs][stride / 32] f16
//   Q4_0            values [outputs][stride / 2]: eight numbers per word of 32 bits, 0, 2, 4, 6, 1,
//                   3, 5, 7 from the lowest bits on; each is stored as number + 8; scales as Q8_0
//   Q4_1            as Q4_0, but without the + 8; scales are pairs of f16: the scale, the minimum
enum class WeightType { F32, F16, BF16, Q8_0, Q4_0, Q4_1 };

struct DeviceMatrix {
  WeightType type = WeightType::F32;
  unsigned outputs = 0, inputs = 0, stride = 0;  // stride: numbers per row, zeros included
  const void* values = nullptr;
  const void* scales = nullptr;
  bool tensor_cores = false;  // tensor_linear() is for this matrix, for any number of rows; not F32
};

// Rows as tensor cores multiply them: bf16 for weights of BF16, f16 for others.
struct HalfRows {
  unsigned short* values = nullptr;  // [count][stride]; zeros behind the row's numbers
  float* powers = nullptr;           // [count]: a row of f16 was divided by this power of two
  float* sums = nullptr;             // [count][stride / 32] of 32 neighbours of `values`
  unsigned count = 0, stride = 0;
  bool is_bf16 = false;  // the values; else f16
};

// For each row of a pass: the token, its index in the text, how many tokens of the text it sees,
// and its sequence.
struct Tokens {
  const int* ids = nullptr;
  const int* positions = nullptr;
  const int* seen = nullptr;
  const int* sequences = nullptr;  // indices of SequenceSlots
};

// What is kept of one sequence. Its keys and values: per cache, in order, the keys of
// [capacity][n_kv_heads] heads, then the values. A head is head_dim numbers of F32 or F16, or
// blocks of Q8_0. And its states, one after the other (StateShape).
struct SequenceSlot {
  void* values = nullptr;
  float* states = nullptr;
  unsigned capacity = 0;
};
enum class CacheType { F32, F16, Q8_0 };
// Of one position. The last block of a head is filled up with zeros.
inline std::size_t cached_bytes(CacheType type, std::size_t n_kv_heads, std::size_t head_dim) {
  const std::size_t n_blocks = (head_dim + BlockQ8_0::kSize - 1) / BlockQ8_0::kSize;
  if (type == CacheType::Q8_0) return n_kv_heads * n_blocks * sizeof(BlockQ8_0);
  return n_kv_heads * head_dim * (type == CacheType::F16 ? 2 : 4);
}
struct Cache {
  const SequenceSlot* slots = nullptr;
  CacheType type = CacheType::F32;
  unsigned n_kv_heads = 0, head_dim = 0;
  unsigned before = 0;  // bytes per position in the caches before this one
};

struct State {
  const SequenceSlot* slots = nullptr;
  unsigned before = 0;  // numbers in the states before this one
};

// out[t] (+)= scale * table[index[t]]
void embed(Rows out, DeviceMatrix table, const int* index, float scale, bool add);

struct NormOptions {
  const float* weight = nullptr;  // may be null
  const float* bias = nullptr;    // may be null
  unsigned group = 0;             // how many neighbouring numbers are normed together
  bool own_weights = false;       // each group of a row has its own weights
  bool centered = false;          // LayerNorm; else RMSNorm
  float eps = 0.0f;
};
// out may be in. If halves.values is not null, the rounded rows of out are written there, as
// round_rows() does it; a row must then be one group.
void norm(Rows out, Rows in, NormOptions options, HalfRows halves);

// Rounds rows for tensor_linear. f16 ends at 65504, so each row of f16 is first divided by the
// power of two below its largest number.
void round_rows(HalfRows out, Rows in);

// Up to kMostProducts products of the same rows in one launch:
// out = in * weight^T + bias, or out += the same. All weights have the same type.
struct Product {
  DeviceMatrix weight;
  const float* bias = nullptr;  // may be null
  Rows out;
  bool add = false;
};
inline constexpr unsigned kMostProducts = 3;
struct Products {
  Product of[kMostProducts];
  unsigned n = 0;
};
void linear(Products products, Rows in);
void tensor_linear(Products products, HalfRows in);

// Each head of out is that of in, from first_column on, times the head's own matrix.
void heads_linear(Rows out, Rows in, const DeviceMatrix* heads, unsigned n_heads,
                  unsigned first_column);
// Each head of out is that of a, followed by that of b.
void join(Rows out, Rows a, Rows b, unsigned n_heads);

enum class Activation { Silu, GeluTanh, Gelu, Relu, Sigmoid, Identity };
// up.values may be null. halves: as in norm()
void activate(Rows out, Rows gate, Rows up, Activation function, HalfRows halves);

void add(Rows x, Rows in, float scale);  // x += scale * in
// x *= scale * by, then soft_cap * tanh(x / soft_cap), then limited to +-clip; 0: not applied
struct MapOptions {
  float scale = 1.0f, soft_cap = 0.0f, clip = 0.0f;
  const float* by = nullptr;  // one number, or one per column; may be null
  bool by_columns = false;
};
void map(Rows x, MapOptions options);

struct RopeOptions {
  const float* frequencies = nullptr;
  unsigned n_frequencies = 0, head_dim = 0;
  unsigned first_column = 0;  // of each head that is rotated
  bool neighbours = false;
};
// positions: by how many steps each row is turned (Placement). k.values may be null.
void rope(Rows q, Rows k, const int* positions, RopeOptions options);

void store(Cache cache, Rows k, Rows v, Tokens tokens);

inline constexpr std::size_t kMaxHeadDim = 576;  // of DeepSeek-V3
struct AttentionOptions {
  unsigned n_heads = 0, window = 0;
  float scale = 0.0f, soft_cap = 0.0f;
  const float* slopes = nullptr;  // [n_heads], may be null
  const float* sinks = nullptr;   // [n_heads], may be null
  // Used where has_tensor_attention() holds: keys in f16, heads of a multiple of 8, at most 128.
  bool tensor_cores = false;
};
void attention(Rows out, Rows q, Cache cache, Tokens tokens, AttentionOptions options);

// As operators/short_conv.h and gated_delta.h. The rows of a sequence are in the order of its text.
void short_conv(Rows out, Rows in, DeviceMatrix taps, const float* bias, State state,
                Tokens tokens);
struct DeltaOptions {
  const float* rate = nullptr;   // [n_heads]
  const float* shift = nullptr;  // [n_heads]
  unsigned n_key_heads = 0, key_dim = 0;
  bool in_turn = false;
};
void gated_delta(Rows out, Rows in, Rows beta, Rows decay, DeltaOptions options, State state,
                 Tokens tokens);

// Turns scores of experts into shares, the factors of their results: see RouteStep.
inline constexpr std::size_t kMaxExperts = 1024;
struct RouteOptions {
  unsigned n_chosen = 0;
  bool normed = false, sigmoid = false;
  const float* bias = nullptr;  // [width of x], may be null
  float scale = 1.0f;
  unsigned n_groups = 1, n_chosen_groups = 1, n_counted = 1;  // RouteGroups; at most 64 groups
};
void route(Rows x, RouteOptions options);

// For each row, writes the experts with a share other than 0, in ascending order, then -1 if there
// are fewer than per_row. chosen: [shares.count][per_row]
void list_experts(Rows shares, unsigned per_row, int* chosen);
// out[i] = in[i / rows_per_input] * matrices[chosen[i]]^T + biases[chosen[i]], one row of out per
// entry of chosen.
struct DeviceExperts {
  const DeviceMatrix* matrices = nullptr;
  const float* const* biases = nullptr;  // may be null
};
void expert_linear(Rows out, Rows in, DeviceExperts experts, const int* chosen,
                   unsigned rows_per_input);
// gate = the clamped SwiGLU of gate and up (operators/clamped_swiglu.h)
void clamped_swiglu(Rows gate, Rows up, float alpha, float limit);
// out[t] = sum of shares[t][e] * in[t * per_row + i], over the chosen experts e of row t
void combine_experts(Rows out, Rows in, Rows shares, unsigned per_row, const int* chosen);

// tokens[t] = the index of the largest number in row t; of equal ones the lowest. -1 where a number
// is NaN or +infinity, or all are -infinity.
void likeliest(Rows logits, int* tokens);

void gather(Rows out, Rows in, const int* index);  // out[i] = in[index[i]]

}  // namespace stagecraft::cuda
