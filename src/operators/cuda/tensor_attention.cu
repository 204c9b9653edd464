// Attention with tensor cores (warp_matrix.h), for large models with keys and values in f16 and
// heads of up to 128 numbers.
//
// A tile has 16 rows: the query heads that share a key head, of one token or of several. One thread
// block computes a tile. Its warps take turns: each takes the next 32 positions, and keeps an
// online softmax per row, as in attention.cu. At the end, the results of the warps are added up.
//
//   scores  S [16 rows][32 positions]  =  Q [16][head_dim] * K^T
//   mix     O [16 rows][head_dim]     +=  e^(S - largest) * V
//
// Positions that a row does not see get the score -infinity, so their values are multiplied by 0. A
// row's bits therefore do not depend on the other rows of its tile, as long as keys and values are
// finite (0 times infinity would be NaN).
#include "operators/cuda/tensor_attention.h"

#include "operators/cuda/cache.h"
#include "operators/cuda/halves.h"
#include "warp_matrix.h"

namespace stagecraft::cuda {
namespace {

constexpr unsigned kWarps = 4;
constexpr unsigned kTileRows = 16;
constexpr unsigned kPositions = 32;           // that a warp computes at a time
constexpr unsigned kGroups = kPositions / 8;  // an instruction computes scores of 8 positions
constexpr unsigned kColumns = 64;             // columns of V that eight lanes load together

// The rows that a block computes.
struct Tile {
  unsigned kv_head, first_head, n_heads;  // query heads of each token
  unsigned first_token, end_token;
  __device__ inline unsigned token(unsigned row) const { return first_token + row / n_heads; }
  __device__ inline unsigned head(unsigned row) const { return first_head + row % n_heads; }
};

// One row, as lane (g, t) stores it. A lane has rows g and g + 8 of the tile.
struct RowState {
  bool is_real = false;                       // false: the tile has fewer rows
  unsigned position = 0, first = 0, end = 0;  // it sees positions [first, end)
  float scale = 0.0f, slope = 0.0f;
  float largest = -INFINITY, sum = 0.0f;  // of the positions of this warp; of this lane
};

// An instruction may multiply the numbers of a head in any order, if the order is the same for Q
// and K. Lane (g, t) has numbers 8t to 8t + 7 of each 32, as in tensor_linear.cu.
template <unsigned kChunks>
__device__ inline void load_query(const float* from, unsigned head_dim, RowState& row,
                                  unsigned (&halves)[kChunks][4]) {
  const unsigned t = threadIdx.x % 4;
  float values[kChunks][8], largest = 0.0f;
#pragma unroll
  for (unsigned c = 0; c < kChunks; ++c) {
#pragma unroll
    for (unsigned i = 0; i < 8; ++i) {
      const unsigned column = c * 32 + t * 8 + i;
      values[c][i] = row.is_real && column < head_dim ? from[column] : 0.0f;
      largest = fmaxf(largest, fabsf(values[c][i]));
    }
  }
  const float power = power_below(max_of_four(largest)), inverse = 1.0f / power;
  row.scale *= power;
#pragma unroll
  for (unsigned c = 0; c < kChunks; ++c) {
#pragma unroll
    for (unsigned i = 0; i < 4; ++i) {
      halves[c][i] = f16_pair(inverse * values[c][2 * i], inverse * values[c][2 * i + 1]);
    }
  }
}

__device__ inline unsigned word(const uint4& four, unsigned i) {
  return i == 0 ? four.x : i == 1 ? four.y : i == 2 ? four.z : four.w;
}

// Eight halves of a head; zeros if no row sees the position, or behind the end of the head.
__device__ inline uint4 load_halves(const __half* from, bool is_seen) {
  if (!is_seen) return {0, 0, 0, 0};
  return *reinterpret_cast<const uint4*>(from);
}

// The keys and values of a key head, and the positions [first, end) that the rows of a tile see.
struct Head {
  const __half *keys, *values;
  unsigned size, width;  // numbers of the head; numbers from one position to the next
  unsigned first = 0xffffffffu, end = 0;
};

// The scores of 16 rows and of 32 positions from `begin`: scores[group][2i + j] of lane (g, t)
// belongs to row g + 8i and to position begin + 8 * group + 2t + j.
using Scores = float[kGroups][4];
// The mixed values, in the order of lanes of Scores; add_values says which column is where.
template <unsigned kWide>
using Mix = float[kWide * 8][4];

// What each warp leaves for the sum over warps.
template <unsigned kWide>
struct WarpResults {
  float maxima[kWarps][kTileRows], sums[kWarps][kTileRows];
  float mixes[kWarps][kTileRows][kWide * kColumns];
};

__device__ inline void start_row(RowState& row, const Tile& tile, unsigned index,
                                 const Tokens& tokens, const AttentionOptions& options) {
  const unsigned token = tile.token(index), head = tile.head(index);
  row.is_real = token < tile.end_token;
  if (!row.is_real) return;
  row.position = static_cast<unsigned>(tokens.positions[token]);
  row.end = static_cast<unsigned>(tokens.seen[token]);
  const bool cut = options.window != 0 && row.position >= options.window;
  row.first = cut ? row.position - options.window + 1 : 0;
  row.scale = options.scale;
  row.slope = options.slopes == nullptr ? 0.0f : options.slopes[head];
  if (options.sinks != nullptr && threadIdx.x < kWarp) {  // a score without a value; counted once
    row.largest = options.sinks[head];
    row.sum = threadIdx.x % 4 == 0 ? 1.0f : 0.0f;
  }
}

template <unsigned kChunks>
__device__ inline void multiply_by_keys(Scores& scores, const unsigned (&query)[2][kChunks][4],
                                        const Head& head, unsigned begin) {
  const unsigned g = threadIdx.x % kWarp / 4, t = threadIdx.x % 4;
#pragma unroll
  for (unsigned group = 0; group < kGroups; ++group) {
    const unsigned p = begin + group * 8 + g;
#pragma unroll
    for (unsigned c = 0; c < kChunks; ++c) {
      const unsigned column = c * 32 + t * 8;
      const uint4 key = load_halves(head.keys + static_cast<size_t>(p) * head.width + column,
                                    p < head.end && column < head.size);
      const unsigned low[2] = {key.x, key.y}, high[2] = {key.z, key.w};
      const unsigned* const a = query[0][c];
      const unsigned* const b = query[1][c];
      multiply_f16(scores[group], {a[0], b[0], a[1], b[1]}, low);
      multiply_f16(scores[group], {a[2], b[2], a[3], b[3]}, high);
    }
  }
}

// The online softmax of row g + 8i: replaces its scores by e^(score - largest), and returns by
// which factor its sums up to here must be multiplied, because the largest score has changed.
__device__ inline float softmax_step(RowState& row, unsigned i, Scores& scores, unsigned begin,
                                     const AttentionOptions& options) {
  const unsigned t = threadIdx.x % 4;
  float largest = row.largest;
#pragma unroll
  for (unsigned group = 0; group < kGroups; ++group) {
#pragma unroll
    for (unsigned j = 0; j < 2; ++j) {
      const unsigned p = begin + group * 8 + 2 * t + j;
      float score = row.scale * scores[group][2 * i + j];
      if (options.soft_cap != 0.0f) score = options.soft_cap * tanhf(score / options.soft_cap);
      score = fmaf(row.slope, static_cast<float>(p) - static_cast<float>(row.position), score);
      if (p < row.first || p >= row.end) score = -INFINITY;
      scores[group][2 * i + j] = score;
      largest = fmaxf(largest, score);
    }
  }
  largest = max_of_four(largest);
  const float base = largest == -INFINITY ? 0.0f : largest;  // 0: the row has seen none yet
  const float factor = expf(row.largest - base);
  row.largest = largest;
  row.sum *= factor;
#pragma unroll
  for (unsigned group = 0; group < kGroups; ++group) {
#pragma unroll
    for (unsigned j = 0; j < 2; ++j) {
      const float term = expf(scores[group][2 * i + j] - base);
      scores[group][2 * i + j] = term;
      row.sum += term;
    }
  }
  return factor;
}

// Eight lanes load kColumns numbers of a position, eight neighbours per lane. Column g of
// mix[wide * 8 + m] is number wide * kColumns + 8g + m of the head.
template <unsigned kWide>
__device__ inline void add_values(Mix<kWide>& mix, const Scores& terms, const Head& head,
                                  unsigned begin) {
  const unsigned g = threadIdx.x % kWarp / 4, t = threadIdx.x % 4;
#pragma unroll
  for (unsigned half = 0; half < kPositions / 16; ++half) {
    unsigned pairs[4];
#pragma unroll
    for (unsigned i = 0; i < 4; ++i) {
      const float* two = &terms[2 * half + i / 2][i % 2 * 2];
      pairs[i] = f16_pair(two[0], two[1]);
    }
#pragma unroll
    for (unsigned wide = 0; wide < kWide; ++wide) {
      uint4 value[4];  // of positions 2t, 2t + 1, 2t + 8 and 2t + 9
#pragma unroll
      for (unsigned i = 0; i < 4; ++i) {
        const unsigned p = begin + half * 16 + i / 2 * 8 + 2 * t + i % 2;
        const unsigned column = wide * kColumns + 8 * g;
        value[i] = load_halves(head.values + static_cast<size_t>(p) * head.width + column,
                               head.first <= p && p < head.end && column < head.size);
      }
#pragma unroll
      for (unsigned m = 0; m < 8; ++m) {
        const unsigned selector = m % 2 == 0 ? 0x5410 : 0x7632;  // the lower, the upper halves
        const unsigned of[2] = {
            __byte_perm(word(value[0], m / 2), word(value[1], m / 2), selector),
            __byte_perm(word(value[2], m / 2), word(value[3], m / 2), selector)};
        multiply_f16(mix[wide * 8 + m], pairs, of);
      }
    }
  }
}

template <unsigned kWide>
__device__ inline void store_results(WarpResults<kWide>& results, const RowState (&rows)[2],
                                     const Mix<kWide>& mix) {
  const unsigned warp = threadIdx.x / kWarp, g = threadIdx.x % kWarp / 4, t = threadIdx.x % 4;
#pragma unroll
  for (unsigned i = 0; i < 2; ++i) {
    const unsigned index = g + 8 * i;
    const float sum = sum_of_four(rows[i].sum);
    if (t == 0) results.maxima[warp][index] = rows[i].largest, results.sums[warp][index] = sum;
#pragma unroll
    for (unsigned m = 0; m < kWide * 8; ++m) {
#pragma unroll
      for (unsigned j = 0; j < 2; ++j) {
        const unsigned column = m / 8 * kColumns + 8 * (2 * t + j) + m % 8;
        results.mixes[warp][index][column] = mix[m][2 * i + j];
      }
    }
  }
}

// Adds up the results of the warps, which refer to different maxima.
template <unsigned kWide>
__device__ inline void write_rows(Rows out, const WarpResults<kWide>& results, const Tile& tile,
                                  unsigned head_dim) {
  for (unsigned i = threadIdx.x; i < kTileRows * head_dim; i += kWarps * kWarp) {
    const unsigned index = i / head_dim, column = i % head_dim, token = tile.token(index);
    if (token >= tile.end_token) break;
    float max = -INFINITY, total = 0.0f, mixed = 0.0f;
    for (unsigned w = 0; w < kWarps; ++w) max = fmaxf(max, results.maxima[w][index]);
    for (unsigned w = 0; w < kWarps; ++w) {
      const float factor = expf(results.maxima[w][index] - max);
      total = fmaf(results.sums[w][index], factor, total);
      mixed = fmaf(results.mixes[w][index][column], factor, mixed);
    }
    out.values[static_cast<size_t>(token) * out.stride + tile.head(index) * head_dim + column] =
        mixed / total;
  }
}

template <unsigned kChunks>
__global__ void __launch_bounds__(kWarps* kWarp)
    tensor_attention_kernel(Rows out, Rows q, Cache cache, Tokens tokens, AttentionOptions options,
                            unsigned tokens_per_tile) {
  constexpr unsigned kWide = (kChunks + 1) / 2;  // pieces of kColumns numbers
  __shared__ WarpResults<kWide> results;
  const unsigned warp = threadIdx.x / kWarp, g = threadIdx.x % kWarp / 4;
  const unsigned n = cache.head_dim;
  const unsigned per_kv_head = options.n_heads / cache.n_kv_heads;
  const unsigned parts = pieces(per_kv_head, kTileRows), part = blockIdx.x % parts;
  Tile tile;
  tile.kv_head = blockIdx.x / parts;
  tile.first_head = tile.kv_head * per_kv_head + part * kTileRows;
  tile.n_heads = min(kTileRows, per_kv_head - part * kTileRows);
  const unsigned end_token = min((blockIdx.y + 1) * tokens_per_tile, q.count);

  // The tokens of a tile may belong to several sequences. Each sequence has its own cache, so they
  // are computed one after the other.
  for (tile.first_token = blockIdx.y * tokens_per_tile; tile.first_token < end_token;
       tile.first_token = tile.end_token) {
    const int sequence = tokens.sequences[tile.first_token];
    tile.end_token = tile.first_token + 1;
    while (tile.end_token < end_token && tokens.sequences[tile.end_token] == sequence) {
      ++tile.end_token;
    }
    Head head{.keys = cached<__half>(cache, sequence, 0) + tile.kv_head * n,
              .values = cached<__half>(cache, sequence, 1) + tile.kv_head * n,
              .size = n,
              .width = cache.n_kv_heads * n};

    RowState rows[2];
    unsigned query[2][kChunks][4];
#pragma unroll
    for (unsigned i = 0; i < 2; ++i) {
      const unsigned index = g + 8 * i;
      RowState& row = rows[i];
      start_row(row, tile, index, tokens, options);
      if (row.is_real) {
        head.first = min(head.first, row.first);
        head.end = max(head.end, row.end);
      }
      const unsigned safe = row.is_real ? tile.token(index) : tile.first_token;
      load_query<kChunks>(q.values + static_cast<size_t>(safe) * q.stride + tile.head(index) * n, n,
                          row, query[i]);
    }
    head.first = __reduce_min_sync(kAllLanes, head.first);
    head.end = __reduce_max_sync(kAllLanes, head.end);

    Mix<kWide> mix = {};
    for (unsigned block = head.first / kPositions; block * kPositions < head.end; ++block) {
      if (block % kWarps != warp) continue;
      const unsigned begin = block * kPositions;
      Scores scores = {};
      multiply_by_keys<kChunks>(scores, query, head, begin);
#pragma unroll
      for (unsigned i = 0; i < 2; ++i) {
        const float factor = softmax_step(rows[i], i, scores, begin, options);
#pragma unroll
        for (unsigned m = 0; m < kWide * 8; ++m) {
          mix[m][2 * i] *= factor;
          mix[m][2 * i + 1] *= factor;
        }
      }
      add_values<kWide>(mix, scores, head, begin);
    }

    store_results<kWide>(results, rows, mix);
    __syncthreads();
    write_rows<kWide>(out, results, tile, n);
    __syncthreads();  // before the next sequence overwrites the results
  }
}

}  // namespace

bool has_tensor_attention(const Cache& cache) {
  const bool is_aligned =
      cache.head_dim % 8 == 0 && cache.before % 16 == 0;  // for loads of 16 bytes
  return cache.type == CacheType::F16 && is_aligned && cache.head_dim <= 128;
}

// In a pass of few rows, each row may belong to another sequence, so a tile has one token. In a
// pass of many rows, most tiles have tokens of one sequence only.
void tensor_attention(Rows out, Rows q, Cache cache, Tokens tokens, AttentionOptions options) {
  constexpr unsigned kFewRows = 64;
  const unsigned per_kv_head = options.n_heads / cache.n_kv_heads;
  const unsigned parts = pieces(per_kv_head, kTileRows);
  const unsigned most = per_kv_head < kTileRows ? kTileRows / per_kv_head : 1;
  const unsigned per_tile = q.count <= kFewRows ? 1 : most;
  const auto launch = [&](auto kernel) {
    run_kernel(kernel, {{cache.n_kv_heads * parts, pieces(q.count, per_tile)}, {kWarps * kWarp}},
               out, q, cache, tokens, options, per_tile);
  };
  if (cache.head_dim <= 64) return launch(tensor_attention_kernel<2>);
  launch(tensor_attention_kernel<4>);
}

}  // namespace stagecraft::cuda
