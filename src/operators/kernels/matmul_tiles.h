#pragma once

#include "operators/kernels/block_weights.h"
#include "operators/kernels/i8mm_pairs.h"
#include "operators/kernels/kernels.h"
#include "operators/kernels/simd.h"

// The tiles: kernels that multiply one panel of weights with a few rows of activations.
//
//                 32 outputs
//            +------------------+
//            |  panel, k = 0    |   the weights of one k fill kVecs vectors
//            |         k = 1    |
//   a[r][k]  |         ...      |   acc[r] += broadcast(a[r][k]) * panel[k]
//            +------------------+
//
// Rows x kVecs sums stay in registers from the first k to the last; the lanes of a vector are never
// added to each other. Each output is summed over k in the same order for any number of rows. So a
// token's bits do not depend on the batch in which it is computed.

namespace stagecraft::STAGECRAFT_ISA {
namespace {

constexpr std::size_t kVecs = kPanelOutputs / kLanes;

// A tile computes `rows` rows and `vecs` vectors of a panel at a time: as many as there are
// registers for their sums (about 24 of 32 registers, or 12 of 16). If kVecs is larger than `vecs`,
// the panel is read again for the other vectors. That costs little for many rows, because the panel
// is in a cache by then. Up to rows_of_whole_lines rows need few registers: they take all kVecs
// vectors and read whole cache lines.
struct TileShape {
  int rows;
  std::size_t vecs;
  int rows_of_whole_lines = 0;

  constexpr std::size_t vecs_of(int n) const { return n <= rows_of_whole_lines ? kVecs : vecs; }
};
#if defined(__AVX512F__)
constexpr TileShape kFloatTile{12, 2}, kHalfTile{12, 2}, kByteTile{6, 2};
#elif defined(__ARM_FEATURE_MATMUL_INT8)
// Bytes, see i8mm_pairs.h: 8 integer sums, 8 float sums, 4 vectors of zipped weights, 2 more for
// nibbles, and a pair of rows: 23 of 32 registers. With 6 rows it would be 31, and GCC would spill
// sums to memory. A single row reads whole cache lines, as it does without pairs.
constexpr TileShape kFloatTile{6, 4}, kHalfTile{6, 4, 1}, kByteTile{4, 2, 1};
#elif defined(__aarch64__)
constexpr TileShape kFloatTile{6, 4}, kHalfTile{6, 4, 1}, kByteTile{3, 4};
#elif defined(__AVX2__)
constexpr TileShape kFloatTile{6, 2, 3}, kHalfTile{6, 2, 3}, kByteTile{4, 2, 2};
#else
constexpr TileShape kFloatTile{2, 4}, kHalfTile{1, 4}, kByteTile{1, 4};
#endif

// When a kernel starts a new panel, the panel is not in any cache yet, and the first tile would
// wait for every cache line. So the tiles of the previous panel prefetch it, spread evenly: many
// requests at once would wait for each other.
template <int Rows>
STAGECRAFT_INLINE void fetch(const TileArgs& t, std::size_t k) {
  if constexpr (Rows > 1) __builtin_prefetch(t.ahead + k * t.ahead_step);
}

// Whether it prefetches into L2 and into L1: see prefetch_from_memory.
STAGECRAFT_INLINE bool fetches_two_levels(const TileArgs& t) {
  return kPrefetchesTwoLevels && t.prefetch == Prefetch::FromMemory;
}

// Whether a tile follows to_next (see below).
template <int Rows>
constexpr bool kFewRows = Rows <= (kTwoPanels ? 3 : 1);
// How many bytes further on a tile that reads in two places prefetches into L1.
constexpr std::size_t kNearAhead = 1024;

// For a tile of one row, or of all rows of a pass. It reads its panels from the first byte to the
// last, and most processors by themselves do not prefetch far enough. When the tile reads the
// n_bytes at `at`, this function prefetches n_bytes further on:
//   to_next      for few rows: bytes of another panel, which is needed later, into L2. With
//                kTwoPanels also kNearAhead bytes further on, into L1: a Zen 3 then generates 1.09
//                times (0.88 to 1.16) as fast after 4,096 tokens
//   Nothing      does nothing
//   FromCaches   for one row: 2,048 bytes further on, into L1. With AVX2 also for two rows: on a
//                Zen 3, two sequences at once are then generated 1.1 to 1.6 times as fast
//   FromMemory   see prefetch_from_memory
//
// kShortSteps: true if n_bytes take only a few instructions. Then the processor reaches the next
// loads early enough by itself: a Zen 3 reads f32 at 21 GB/s without this prefetch and at 17 with
// it. (Bytes: at 17 without and at 20 with it.)
//
// kAheadOfTwo: how many bytes further on, if there are two panels.
template <int Rows, std::size_t n_bytes, bool kShortSteps = false,
          std::size_t kAheadOfTwo = kNearAhead>
STAGECRAFT_INLINE void prefetch_ahead(const TileArgs& t, const std::byte* at) {
  if (kFewRows<Rows> && t.to_next != 0) {
    prefetch<n_bytes, kIntoL2>(at + t.to_next);
    if (Rows == 1 && kTwoPanels) prefetch<n_bytes, kIntoL1>(at + kNearAhead);
    return;
  }
  const bool two_levels = fetches_two_levels(t);
  // A constant: a branch in the loop of every tile made prompts a tenth slower.
  constexpr bool kTwoRows = Rows == 2 && kLanes == 8;
  if (Rows > 1 && (t.ahead_step != 0 || !(two_levels || kTwoRows))) return;
  if (two_levels) {
    prefetch_from_memory<n_bytes>(at);
  } else if (t.prefetch != Prefetch::None && (!kShortSteps || kLanes != 8)) {
    const bool has_two = Rows == 1 && kTwoPanels && t.second != 0;
    prefetch<n_bytes, kIntoL1>(at + (has_two ? kAheadOfTwo : 2048));
  }
}

// For a kernel that reads its panel, of panel_bytes, several times. If the call has all rows,
// fetch_on_the_way gives it nothing to prefetch. Then it prefetches the next panel.
STAGECRAFT_INLINE TileArgs fetching_next_panel(const TileArgs& t, std::size_t panel_bytes) {
  TileArgs all = t;
  if (t.ahead_step == 0) {
    all.ahead = t.panel + panel_bytes;
    all.ahead_step = panel_bytes / t.inputs;
  }
  return all;
}

// The same for a tile that computes Vecs vectors at a time. If a panel has more vectors, the tile
// reads it several times. With two levels, it prefetches straight on instead. A tile of two or
// three rows that prefetches another panel into L2 prefetches its own into L1.
template <int Rows, std::size_t Vecs>
STAGECRAFT_INLINE TileArgs fetching_for_parts(const TileArgs& t, std::size_t panel_bytes) {
  if (Rows > 1 && kFewRows<Rows> && t.to_next != 0) {
    TileArgs own = t;
    own.ahead = t.panel + kNearAhead;
    return own;
  }
  if (Vecs == kVecs || fetches_two_levels(t)) return t;
  return fetching_next_panel(t, panel_bytes);
}

// Writes a vector of sums, or adds it to the numbers there.
STAGECRAFT_INLINE void write_sum(bool add, Vec sum, float* out) {
  store(out, add ? load(out) + sum : sum);
}

// Computes a panel in parts of `Vecs` vectors: sums(first, acc) computes the sums of the Vecs
// vectors from `first` on. If t.add, they are added to the numbers at t.out at the end. With
// kFromOut, the sums begin with these numbers instead, as AMX does it.
template <int Rows, std::size_t Vecs, bool kFromOut = false, class Sums>
STAGECRAFT_INLINE void tile(const TileArgs& t, Sums sums) {
  for (std::size_t first = 0; first < kVecs; first += Vecs) {
    const auto out = [&](int r, std::size_t v) STAGECRAFT_INLINED {
      return t.out + r * t.out_stride + (first + v) * kLanes;
    };
    Vec acc[Rows][Vecs] = {};
    if (kFromOut && t.add) {
      STAGECRAFT_UNROLL
      for (int r = 0; r < Rows; ++r) {
        STAGECRAFT_UNROLL
        for (std::size_t v = 0; v < Vecs; ++v) acc[r][v] = load(out(r, v));
      }
    }
    sums(first, acc);
    STAGECRAFT_UNROLL
    for (int r = 0; r < Rows; ++r) {
      STAGECRAFT_UNROLL
      for (std::size_t v = 0; v < Vecs; ++v) {
        write_sum(t.add && !kFromOut, acc[r][v], out(r, v));
      }
    }
  }
}

// Computes the two panels of a tile of one row in steps: add(step, at, 0, acc) adds the products
// with the weights of one step to the sums of both panels. `at`: the weights of the first panel.
template <class Add>
STAGECRAFT_INLINE void two_panels(const TileArgs& t, std::size_t steps, std::size_t step_bytes,
                                  Add add) {
  Vec acc[2][1][kVecs] = {};
  const std::byte* at = t.panel;
  for (std::size_t step = 0; step < steps; ++step, at += step_bytes) add(step, at, 0, acc);
  for (std::size_t v = 0; v < kVecs; ++v) {
    write_sum(t.add, acc[0][0][v], t.out + v * kLanes);
    write_sum(t.add, acc[1][0][v], t.out + t.second_out + v * kLanes);
  }
}

// The same for a short step, which adds to the sums of one panel.
template <class Add>
STAGECRAFT_INLINE void two_panels_in_turn(const TileArgs& t, std::size_t steps,
                                          std::size_t step_bytes, Add add) {
  two_panels(t, steps, step_bytes,
             [&](std::size_t step, const std::byte* at, std::size_t first, Vec(&acc)[2][1][kVecs])
                 STAGECRAFT_INLINED {
                   add(step, at, first, acc[0]);
                   add(step, at + t.second, first, acc[1]);
                 });
}

// Multiplies floats, one input after the other. An input has kInputBytes in the panel; get(w, i)
// returns, as floats, the weights of the kLanes outputs from i on for the input at w.
template <int Rows, std::size_t Vecs, std::size_t kInputBytes, class Get>
STAGECRAFT_INLINE void tile_floats(const TileArgs& t, Get get) {
  const auto* a = static_cast<const float*>(t.rows);
  TileArgs fetching = fetching_for_parts<Rows, Vecs>(t, kInputBytes * t.inputs);
  const auto add_input = [&](std::size_t k, const std::byte* w, std::size_t first,
                             Vec(&acc)[Rows][Vecs]) STAGECRAFT_INLINED {
    fetch<Rows>(fetching, k);
    prefetch_ahead<Rows, kInputBytes, kInputBytes == 4 * kPanelOutputs>(fetching, w);
    // The side with fewer vectors stays in registers; those of the other follow one another. With
    // AVX2, three rows take 12 sums + 3 + 1 of the 16 registers. If the weights stayed, GCC would
    // keep two sums in memory: a Zen 3 then takes 1.9 times as long with f16 from L1.
    if constexpr (Rows < Vecs) {
      Vec x[Rows];
      STAGECRAFT_UNROLL
      for (int r = 0; r < Rows; ++r) x[r] = broadcast(a[r * t.row_stride + k]);
      STAGECRAFT_UNROLL
      for (std::size_t v = 0; v < Vecs; ++v) {
        const Vec weight = get(w, (first + v) * kLanes);
        STAGECRAFT_UNROLL
        for (int r = 0; r < Rows; ++r) acc[r][v] = fma(x[r], weight, acc[r][v]);
      }
    } else {
      Vec weight[Vecs];
      STAGECRAFT_UNROLL
      for (std::size_t v = 0; v < Vecs; ++v) weight[v] = get(w, (first + v) * kLanes);
      STAGECRAFT_UNROLL
      for (int r = 0; r < Rows; ++r) {
        const Vec x = broadcast(a[r * t.row_stride + k]);
        STAGECRAFT_UNROLL
        for (std::size_t v = 0; v < Vecs; ++v) acc[r][v] = fma(x, weight[v], acc[r][v]);
      }
    }
  };
  if constexpr (Rows == 1 && kTwoPanels) {
    if (t.second != 0) return two_panels_in_turn(t, t.inputs, kInputBytes, add_input);
  }
  tile<Rows, Vecs>(t, [&](std::size_t first, Vec(&acc)[Rows][Vecs]) STAGECRAFT_INLINED {
    const std::byte* w = t.panel;
    // Unrolled, the loop needs fewer instructions: with AVX2, prompts of f16 take 3% less time.
    STAGECRAFT_UNROLL_BY_2
    for (std::size_t k = 0; k < t.inputs; ++k, w += kInputBytes) add_input(k, w, first, acc);
    fetching.ahead += kInputBytes * Vecs / kVecs;  // the next part prefetches other cache lines
  });
}
template <int Rows>
void tile_f32(const TileArgs& t) {
  tile_floats<Rows, kFloatTile.vecs_of(Rows), 4 * kPanelOutputs>(
      t, [](const std::byte* w, std::size_t i)
             STAGECRAFT_INLINED { return load(reinterpret_cast<const float*>(w) + i); });
}
template <int Rows>
void tile_f16(const TileArgs& t) {
  tile_floats<Rows, kHalfTile.vecs_of(Rows), 2 * kPanelOutputs>(
      t, [](const std::byte* w, std::size_t i) STAGECRAFT_INLINED {
        return load_f16(reinterpret_cast<const std::uint16_t*>(w) + i);
      });
}
// Each input has a scale, then its bytes. A weight is the product of the two, so it is rounded once
// more than a stored float. The product costs one multiplication for all rows.
template <int Rows>
void tile_q8_by_input(const TileArgs& t) {
  tile_floats<Rows, kHalfTile.vecs_of(Rows), sizeof(float) + kPanelOutputs>(
      t, [](const std::byte* w, std::size_t i) STAGECRAFT_INLINED {
        return load_i8(w + sizeof(float) + i) * broadcast(load_as<float>(w));
      });
}

// bf16, [k / 2][32][2]: a 32-bit word holds the weights of two inputs, the first in its lower half.
template <int Rows>
void tile_bf16(const TileArgs& t) {
  constexpr std::size_t Vecs = kHalfTile.vecs_of(Rows);
  TileArgs fetching = fetching_for_parts<Rows, Vecs>(t, 2 * kPanelOutputs * t.inputs);
  const auto* a = static_cast<const float*>(t.rows);
  const auto add_pair = [&](std::size_t index, const std::byte* w, std::size_t,
                            Vec(&acc)[Rows][Vecs]) STAGECRAFT_INLINED {
    const std::size_t k = 2 * index;
    fetch<Rows>(fetching, k);
    prefetch_ahead<Rows, 4 * kPanelOutputs, true>(fetching, w);
    STAGECRAFT_UNROLL
    for (int second = 0; second < 2; ++second) {
      Vec weight[Vecs];
      STAGECRAFT_UNROLL
      for (std::size_t v = 0; v < Vecs; ++v) {
        const Ints pair = load_ints(w + 4 * kLanes * v);
        weight[v] = as_float(second == 0 ? pair << 16 : pair & -65536);
      }
      STAGECRAFT_UNROLL
      for (int r = 0; r < Rows; ++r) {
        const Vec x = broadcast(a[r * t.row_stride + k + second]);
        STAGECRAFT_UNROLL
        for (std::size_t v = 0; v < Vecs; ++v) acc[r][v] = fma(x, weight[v], acc[r][v]);
      }
    }
  };
  constexpr std::size_t kPairBytes = 4 * kPanelOutputs;
  if constexpr (Rows == 1 && kTwoPanels) {
    if (t.second != 0) return two_panels_in_turn(t, t.inputs / 2, kPairBytes, add_pair);
  }
  tile<Rows, Vecs>(t, [&](std::size_t first, Vec(&acc)[Rows][Vecs]) STAGECRAFT_INLINED {
    const std::byte* w = t.panel + 4 * kLanes * first;
    for (std::size_t i = 0; i < t.inputs / 2; ++i, w += kPairBytes) add_pair(i, w, first, acc);
    fetching.ahead += kPairBytes * Vecs / kVecs;  // see tile_floats
  });
}

#if defined(__AVX512BF16__)
template <int Rows>
void tile_rounded_bf16(const TileArgs& t) {
  constexpr std::size_t Vecs = kFloatTile.vecs;
  tile<Rows, Vecs>(t, [&](std::size_t first, Vec(&acc)[Rows][Vecs]) STAGECRAFT_INLINED {
    const std::byte* w = t.panel + 4 * kLanes * first;
    for (std::size_t k = 0; k < t.inputs; k += 2, w += 4 * kPanelOutputs) {
      fetch<Rows>(t, k);
      Ints pair[Vecs];
      STAGECRAFT_UNROLL
      for (std::size_t v = 0; v < Vecs; ++v) pair[v] = load_ints(w + 4 * kLanes * v);
      STAGECRAFT_UNROLL
      for (int r = 0; r < Rows; ++r) {
        const auto* a = static_cast<const std::uint16_t*>(t.rows) + r * t.row_stride + k;
        const Ints both = broadcast(load_as<std::int32_t>(a));
        STAGECRAFT_UNROLL
        for (std::size_t v = 0; v < Vecs; ++v) acc[r][v] = dot_bf16(acc[r][v], pair[v], both);
      }
    }
  });
}
#endif

// Multiplies blocks of 32 inputs (Block in block_weights.h), one after the other: the products of a
// block are summed exactly as integers, then multiplied with both scales and added to the float
// sum. For K-quants, see k_quant_tiles.h.

// If a panel holds weight + bias, a dot product starts at -bias times the sum of the row's bytes,
// which cancels the bias. sum_of(r): this sum for row r.
template <int Rows, std::size_t Vecs, class SumOf>
STAGECRAFT_INLINE void begin_dots(std::int32_t bias, SumOf sum_of, Ints (&dot)[Rows][Vecs]) {
  STAGECRAFT_UNROLL
  for (int r = 0; r < Rows; ++r) {
    const Ints start = broadcast(-bias * sum_of(r));
    STAGECRAFT_UNROLL
    for (std::size_t v = 0; v < Vecs; ++v) dot[r][v] = start;
  }
}

template <int Rows, WeightLayout kLayout>
void tile_blocks(const TileArgs& t) {
  using Block = Block<kLayout>;
  constexpr std::size_t Vecs = kByteTile.vecs_of(Rows);
  const TileArgs fetching =
      fetching_for_parts<Rows, Vecs>(t, Block::kBytes * (t.inputs / kQuantBlock));
  const auto add_block = [&](std::size_t b, const std::byte* block, std::size_t first,
                             Vec(&acc)[Rows][Vecs]) STAGECRAFT_INLINED {
    const auto* a = static_cast<const std::int8_t*>(t.rows) + b * kQuantBlock;
    const auto four = [&](int r, int group) STAGECRAFT_INLINED {  // bytes of a row, in all lanes
      return broadcast(load_as<std::int32_t>(a + r * t.row_stride + 4 * group));
    };
    Ints dot[Rows][Vecs];
    const auto sum_of_block = [&](int r)
                                  STAGECRAFT_INLINED { return t.sums[r * t.block_stride + b].all; };
    begin_dots(Block::kBias, sum_of_block, dot);
#if defined(__ARM_FEATURE_MATMUL_INT8)
    constexpr bool kPairs = kLayout == WeightLayout::Q8_0 || kLayout == WeightLayout::Q4_0 ||
                            kLayout == WeightLayout::Q4_1;
    constexpr int kInPairs = kPairs ? Rows / 2 * 2 : 0;  // rows of add_pairs, before the loop
    if constexpr (kInPairs > 0) {
      add_pairs<Block::kNibbles>(block + 4 * kLanes * first, a, t.row_stride, dot);
    }
#else
    constexpr int kInPairs = 0;
#endif
    constexpr int kGroups = Block::kNibbles ? 4 : 8;
    STAGECRAFT_UNROLL
    for (int group = 0; group < kGroups; ++group) {
      constexpr std::size_t kInputs = kQuantBlock / kGroups;
      fetch<Rows>(fetching, b * kQuantBlock + group * kInputs);
      fetch<Rows>(fetching, b * kQuantBlock + group * kInputs + kInputs / 2);
      prefetch_ahead<Rows, 4 * kPanelOutputs>(fetching, block + 4 * kPanelOutputs * group);
      Ints low[Vecs], high[Vecs];
      STAGECRAFT_UNROLL
      for (std::size_t v = 0; v < Vecs; ++v) {
        const std::size_t output = kLanes * (first + v);
        if constexpr (Block::kNibbles) {
          const auto [w, next_w] = Block::weights(block, group, output);
          low[v] = w;
          high[v] = next_w;
        } else {
          low[v] = load_ints(block + 4 * (kPanelOutputs * group + output));
        }
      }
      STAGECRAFT_UNROLL
      for (int r = kInPairs; r < Rows; ++r) {
        const Ints x = four(r, group);
        STAGECRAFT_UNROLL
        for (std::size_t v = 0; v < Vecs; ++v) {
          if constexpr (!Block::kNibbles) {
            dot[r][v] = dot_q8(dot[r][v], low[v], x);
          } else if constexpr (Block::kWholeBytes) {
            dot[r][v] = dot_q8(dot_q8(dot[r][v], low[v], x), high[v], four(r, group + 4));
          } else {
            dot[r][v] = dot_two_small(dot[r][v], low[v], x, high[v], four(r, group + 4));
          }
        }
      }
    }
    STAGECRAFT_UNROLL
    for (std::size_t v = 0; v < Vecs; ++v) {
      const std::size_t output = kLanes * (first + v);
      const Vec d = Block::scales(block, output);
      STAGECRAFT_UNROLL
      for (int r = 0; r < Rows; ++r) {
        const float scale = t.scales[r * t.block_stride + b];
        acc[r][v] = fma(to_float(dot[r][v]), d * broadcast(scale), acc[r][v]);
      }
      if constexpr (Block::kMinima) {
        const Vec m = Block::minima(block, output);
        STAGECRAFT_UNROLL
        for (int r = 0; r < Rows; ++r) {
          const std::size_t i = r * t.block_stride + b;
          acc[r][v] = fma(m, broadcast(t.scales[i] * static_cast<float>(t.sums[i].all)), acc[r][v]);
        }
      }
    }
  };
  const std::size_t blocks = t.inputs / kQuantBlock;
  if constexpr (Rows == 1 && kTwoPanels) {
    if (t.second != 0) return two_panels_in_turn(t, blocks, Block::kBytes, add_block);
  }
  tile<Rows, Vecs>(t, [&](std::size_t first, Vec(&acc)[Rows][Vecs]) STAGECRAFT_INLINED {
    const std::byte* block = t.panel;
    for (std::size_t b = 0; b < blocks; ++b, block += Block::kBytes) {
      add_block(b, block, first, acc);
    }
  });
}

}  // namespace
}  // namespace stagecraft::STAGECRAFT_ISA
