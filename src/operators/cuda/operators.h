#pragma once

#include <cstddef>

#include "operators/activation_function.h"
#include "operators/q8_0.h"

// The steps of a plan (model/plan.h) on a GPU. Each function launches one kernel and returns at
// once. If the launch fails, check_launches() throws; if the kernel fails, download() or finish()
// throws (device.h). This header is plain C++: only the .cu files need a CUDA compiler, or the
// emulator.
//
// All pointers point to memory of the GPU. The data of each token (id, position, sequence) is in
// the GPU's memory, too. The host decides only the number of rows. Therefore the launches of a pass
// can be recorded as a graph and repeated.
//
// A row's bits do not depend on other rows. Each output is summed in one fixed order. A product and
// a sum are written as fmaf if a compiler could otherwise join them in one kernel and not in
// another.
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

// Weights in the number format of the file. A format that is not in this list is stored as one of
// the list (see type_of in device_weights.cpp). Quantised weights keep their integers and scales.
// Only the order of the bytes changes, so that a lane (a thread of a warp) loads eight numbers at
// once:
//
//   F32, F16, BF16  values [outputs][stride]
//   Q8_0            values [outputs][stride] signed bytes, scales [outputs][stride / 32] f16
//   Q4_0            values [outputs][stride / 2] bytes: a word of 32 bits holds eight numbers,
//                   from the lowest bits on in the order 0, 2, 4, 6, 1, 3, 5, 7; each is stored
//                   as number + 8; scales as in Q8_0
//   Q4_1            as Q4_0, but without the + 8; each scale is a pair of f16: scale and minimum
enum class WeightType { F32, F16, BF16, Q8_0, Q4_0, Q4_1 };

struct DeviceMatrix {
  WeightType type = WeightType::F32;
  unsigned outputs = 0, inputs = 0, stride = 0;  // stride: numbers per row, zeros included
  const void* values = nullptr;
  const void* scales = nullptr;
  bool tensor_cores = false;  // use tensor_linear() for any number of rows; never set for F32
};

// Rows that are rounded for tensor cores: to bf16 for weights of BF16, to f16 for other weights.
struct HalfRows {
  unsigned short* values = nullptr;  // [count][stride]; zeros behind the row's numbers
  float* powers = nullptr;           // [count]: the power of two that divided the row; 1 for bf16
  float* sums = nullptr;             // [count][stride / 32]: sums of 32 neighbours of `values`
  unsigned count = 0, stride = 0;
  bool is_bf16 = false;  // `values` are bf16; else f16
};

// One number per row of a pass: the token, its index in the text, how many tokens of the text it
// sees, and its sequence.
struct Tokens {
  const int* ids = nullptr;
  const int* positions = nullptr;
  const int* seen = nullptr;
  const int* sequences = nullptr;  // indices of SequenceSlots
};

// The memory of one sequence. `values` holds all caches in their order: for each cache the keys
// [capacity][n_kv_heads] of heads, then the values in the same shape. A head is head_dim numbers of
// F32 or F16, or blocks of Q8_0. `states` holds all states in their order (StateShape).
struct SequenceSlot {
  void* values = nullptr;
  float* states = nullptr;
  unsigned capacity = 0;  // positions; 0: the slot is free
};
enum class CacheType { F32, F16, Q8_0 };
// Bytes of the keys, or of the values, of one position. The last Q8_0 block of a head is filled up
// with zeros.
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

// out[t] = scale * table[index[t]], or += with `add`. index: [count of out], rows of the table.
void embed(Rows out, DeviceMatrix table, const int* index, float scale, bool add);

struct NormOptions {
  const float* weight = nullptr;  // may be null
  const float* bias = nullptr;    // may be null
  unsigned group = 0;             // how many neighbouring numbers are normalised together
  bool own_weights = false;       // each group of a row has its own weights
  bool centered = false;          // LayerNorm; else RMSNorm
  float eps = 0.0f;
};
// out may be in. If halves.values is not null, the kernel also rounds the rows of out into
// `halves`, as round_rows() would. A row must then be one group.
void norm(Rows out, Rows in, NormOptions options, HalfRows halves);

// Rounds rows for tensor_linear. The largest f16 is 65504, so a row is divided by a power of two
// before it is rounded to f16: the largest power that is not above the row's largest absolute
// value.
void round_rows(HalfRows out, Rows in);

// Up to kMostProducts products of the same rows in one launch: out = in * weight^T + bias, or +=
// with `add`. All weights have the same type. in: [count, inputs]; each out: [count, outputs]. No
// out may overlap `in` or another out.
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

// out_h = heads[h] . in_h for each head h. It uses the columns of in_h from first_column on. out
// must not overlap `in`.
void heads_linear(Rows out, Rows in, const DeviceMatrix* heads, unsigned n_heads,
                  unsigned first_column);
// Each head of out is the head of a followed by the head of b. out must not overlap a or b.
void join(Rows out, Rows a, Rows b, unsigned n_heads);

// out = function(gate) * up, or function(gate) if up.values is null. out may be gate. halves: as in
// norm().
void activate(Rows out, Rows gate, Rows up, ActivationFunction function, HalfRows halves);

void add(Rows x, Rows in, float scale);  // x += scale * in, both [count, width]
// x *= scale * by, then x = soft_cap * tanh(x / soft_cap), then x is limited to [-clip, clip]. A
// soft_cap or clip of 0 is not applied.
struct MapOptions {
  float scale = 1.0f, soft_cap = 0.0f, clip = 0.0f;
  const float* by = nullptr;  // may be null: 1
  bool by_columns = false;    // `by` has one number per column; else one number for all
};
void map(Rows x, MapOptions options);

struct RopeOptions {
  const float* frequencies = nullptr;
  unsigned n_frequencies = 0, head_dim = 0;
  unsigned first_column = 0;  // the first column of each head that is rotated
  bool neighbours = false;    // RopeStep::Pairs
};
// Rotates q and k in place. Row t is rotated by positions[t] * frequency (Placement). k.values may
// be null.
void rope(Rows q, Rows k, const int* positions, RopeOptions options);

// Writes the keys and values of this pass into the cache, at tokens.positions.
void store(Cache cache, Rows k, Rows v, Tokens tokens);
// rope(q, k, positions, options) and store() in one launch. Heads must have the cache's head_dim. v
// must not be q: one block rotates a head of q while another one stores v.
void rope_and_store(Cache cache, Rows q, Rows k, Rows v, Tokens tokens, const int* positions,
                    RopeOptions options);

inline constexpr std::size_t kMaxHeadDim = 576;  // DeepSeek-V3 has the largest heads
struct AttentionOptions {
  unsigned n_heads = 0, window = 0;
  float scale = 0.0f, soft_cap = 0.0f;
  const float* slopes = nullptr;  // [n_heads], may be null
  const float* sinks = nullptr;   // [n_heads], may be null
  // Use tensor cores if has_tensor_attention(): a cache of f16, and head_dim a multiple of 8, at
  // most 128.
  bool tensor_cores = false;
};
// Attention of q over the cache: AttentionStep, and its options. store() comes first. q and out:
// [count, n_heads * head_dim].
void attention(Rows out, Rows q, Cache cache, Tokens tokens, AttentionOptions options);

// Like operators/short_conv.h and gated_delta.h. The rows of a sequence must be in the order of its
// text.
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

// Replaces the scores of experts by their routing weights, in place: see RouteStep.
inline constexpr std::size_t kMaxExperts = 1024;
struct RouteOptions {
  unsigned n_chosen = 0;
  bool normed = false, sigmoid = false;
  const float* bias = nullptr;  // [width of x], may be null
  float scale = 1.0f;
  unsigned n_groups = 1, n_chosen_groups = 1, n_counted = 1;  // RouteGroups
};
void route(Rows x, RouteOptions options);

// For each row, writes the experts with a routing weight other than 0, in ascending order, then -1
// if there are fewer than per_row. chosen: [routing_weights.count][per_row]
void list_experts(Rows routing_weights, unsigned per_row, int* chosen);
// out[i] = in[i / rows_per_input] * matrices[chosen[i]]^T + biases[chosen[i]], one row of out per
// entry of `chosen`. Rows with chosen[i] = -1 are not written.
struct DeviceExperts {
  const DeviceMatrix* matrices = nullptr;
  const float* const* biases = nullptr;  // may be null
};
void expert_linear(Rows out, Rows in, DeviceExperts experts, const int* chosen,
                   unsigned rows_per_input);
// gate = clamped SwiGLU of gate and up (operators/clamped_swiglu.h)
void clamped_swiglu(Rows gate, Rows up, float alpha, float limit);
// out[t] = sum over i of routing_weights[t][e] * in[t * per_row + i], where e = chosen[t * per_row
// + i]; the sum ends at the first -1
void combine_experts(Rows out, Rows in, Rows routing_weights, unsigned per_row, const int* chosen);

// tokens[t] = the index of the largest number in row t; if several are equal, the lowest index. -1
// if a number is NaN or +infinity, or if all are -infinity.
void likeliest(Rows logits, int* tokens);

// out[i] = in[index[i]]. index: [count of out], rows of `in`. out must not overlap `in`.
void gather(Rows out, Rows in, const int* index);

}  // namespace stagecraft::cuda
