#pragma once

#include <cstring>

#include "operators/kernels/k_quant_tiles.h"
#include "operators/kernels/matmul_tiles.h"

// A tile of a few rows unpacks a panel while it multiplies. With many rows, the same weights would
// be unpacked again and again. So some kernels unpack up to 256 inputs of a panel once, for all
// rows of a call.

namespace stagecraft::STAGECRAFT_ISA {
namespace {

// Up to 256 inputs of a panel, unpacked, in blocks of kInputs. A weight is scale * byte + minimum.
template <std::size_t kInputs>
struct Blocks {
  static constexpr std::size_t kMost = kKBlock / kInputs;
  alignas(64) std::int8_t weights[kMost][kInputs / 4][kPanelOutputs][4];
  alignas(64) float scales[kMost][kPanelOutputs], minima[kMost][kPanelOutputs];
};

// Stores kLanes words of four bytes. kSigned: after subtracting `bias` from each byte.
template <bool kSigned>
STAGECRAFT_INLINE void put(void* to, Ints weights, std::int32_t bias) {
  typedef std::uint8_t Bytes __attribute__((vector_size(4 * kLanes)));  // may wrap around
  if constexpr (kSigned) weights = (Ints)((Bytes)weights - static_cast<std::uint8_t>(bias));
  std::memcpy(to, &weights, sizeof weights);
}

// Unpacks a block of weights, see two(). kSigned: without the bias.
template <bool kSigned, class Unpacking>
STAGECRAFT_INLINE void unpack_weights(const std::byte* at, int one,
                                      std::int8_t (*to)[kPanelOutputs][4]) {
  for (std::size_t lane = 0; lane < kPanelOutputs; lane += kLanes) {
    for (int i = 0; i < kTwos<Unpacking>; ++i) {
      const auto [first, second] = Unpacking::two(at, one, i, lane);
      const std::size_t four = first_of<Unpacking>(i) / 4;
      put<kSigned>(to[four][lane], first, Unpacking::kBias);
      put<kSigned>(to[four + Unpacking::kApart / 4][lane], second, Unpacking::kBias);
    }
  }
}

// Unpacks the n blocks at `at` and returns where the next ones begin. kSigned: without the bias.
template <bool kSigned, class Unpacking>
STAGECRAFT_INLINE const std::byte* unpack(const std::byte* at, std::size_t n,
                                          Blocks<Unpacking::kInputs>& blocks) {
  const std::byte* const head = at;
  const auto scales = [&](std::size_t b, const std::byte* stored) STAGECRAFT_INLINED {
    for (std::size_t lane = 0; lane < kPanelOutputs; lane += kLanes) {
      const auto put = [&](std::size_t i, Vec scale, Vec minimum) STAGECRAFT_INLINED {
        store(&blocks.scales[b + i][lane], scale);
        if constexpr (Unpacking::kMinima) store(&blocks.minima[b + i][lane], minimum);
      };
      read_scales<Unpacking>(head, stored, lane, put);
    }
  };
  const auto weights = [&](std::size_t b, const std::byte* stored, int one) STAGECRAFT_INLINED {
    unpack_weights<kSigned, Unpacking>(stored, one, blocks.weights[b]);
  };
  return for_blocks<Unpacking>(at + Unpacking::kHeadBytes, n, scales, weights);
}

// Multiplies Rows rows with n unpacked blocks, the first of which begins at input `first` of the
// rows. sums: those of these rows so far.
template <WeightLayout kLayout, int Rows>
STAGECRAFT_INLINE void add_unpacked(const TileArgs& t, std::size_t first, std::size_t n,
                                    const Blocks<Unpacking<kLayout>::kInputs>& blocks,
                                    float (*sums)[kPanelOutputs]) {
  using Unpacking = Unpacking<kLayout>;
  constexpr std::size_t Vecs = kByteTile.vecs_of(Rows);
  RowSums<Unpacking> row_sums[Rows];
  if constexpr (Unpacking::kMinima) sum_blocks<Unpacking>(t, Rows, first, n, row_sums);
  for (std::size_t lane = 0; lane < kPanelOutputs; lane += Vecs * kLanes) {
    Vec acc[Rows][Vecs];
    STAGECRAFT_UNROLL
    for (int r = 0; r < Rows; ++r) {
      STAGECRAFT_UNROLL
      for (std::size_t v = 0; v < Vecs; ++v) acc[r][v] = load(&sums[r][lane + kLanes * v]);
    }
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t input = first + i * Unpacking::kInputs, b = input / kQuantBlock;
      const auto sum = [&](int r) STAGECRAFT_INLINED {
        return sum_of<Unpacking>(t.sums[r * t.block_stride + b], input);
      };
      Ints dot[Rows][Vecs];
      begin_dots(Unpacking::kBias, sum, dot);
      STAGECRAFT_UNROLL
      for (std::size_t k = 0; k < Unpacking::kInputs; k += 8) {
        TwoFours two[Vecs];
        STAGECRAFT_UNROLL
        for (std::size_t v = 0; v < Vecs; ++v) {
          two[v] = {load_ints(blocks.weights[i][k / 4][lane + kLanes * v]),
                    load_ints(blocks.weights[i][k / 4 + 1][lane + kLanes * v])};
        }
        add_fours<Unpacking::kWholeBytes>(t, input + k, input + k + 4, two, dot);
      }
      STAGECRAFT_UNROLL
      for (std::size_t v = 0; v < Vecs; ++v) {
        const std::size_t output = lane + kLanes * v;
        add_scaled_dots(t, b, v, load(&blocks.scales[i][output]), dot, acc);
        if constexpr (Unpacking::kMinima) {
          add_minima(load(&blocks.minima[i][output]), row_sums, i, v, acc);
        }
      }
    }
    STAGECRAFT_UNROLL
    for (int r = 0; r < Rows; ++r) {
      STAGECRAFT_UNROLL
      for (std::size_t v = 0; v < Vecs; ++v) store(&sums[r][lane + kLanes * v], acc[r][v]);
    }
  }
}

// Rows [first, end) of the n rows of t, which are bytes, with their part of the memory to
// prefetch.
STAGECRAFT_INLINE TileArgs some_rows(const TileArgs& t, std::size_t first, std::size_t end,
                                     std::size_t n) {
  TileArgs some = t;
  some.rows = static_cast<const std::int8_t*>(t.rows) + first * t.row_stride;
  some.scales = t.scales + first * t.block_stride;
  some.sums = t.sums + first * t.block_stride;
  some.out = t.out + first * t.out_stride;
  const std::size_t bytes = t.ahead_step * t.inputs;
  some.ahead = t.ahead + bytes * first / n;
  some.ahead_step = bytes * (end - first) / n / t.inputs;
  return some;
}

// Writes the sums of n rows to t.out, or adds them.
STAGECRAFT_INLINE void write_sums(const TileArgs& t, std::size_t n,
                                  const float (*sums)[kPanelOutputs]) {
  for (std::size_t r = 0; r < n; ++r) {
    for (std::size_t lane = 0; lane < kPanelOutputs; lane += kLanes) {
      write_sum(t.add, load(&sums[r][lane]), t.out + r * t.out_stride + lane);
    }
  }
}

constexpr std::size_t kUnpackedRows = 48;  // the largest number of rows of tile_unpacked

// n: a multiple of kByteTile.rows.
template <WeightLayout kLayout>
void tile_unpacked(const TileArgs& t, std::size_t n) {
  using Unpacking = Unpacking<kLayout>;
  alignas(64) float sums[kUnpackedRows][kPanelOutputs];
  std::memset(sums, 0, n * sizeof sums[0]);
  Blocks<Unpacking::kInputs> blocks;
  const std::byte* at = t.panel;
  for (std::size_t first = 0; first < t.inputs; first += kKBlock) {
    const std::size_t inputs = std::min(kKBlock, t.inputs - first);
    const std::size_t n_blocks = inputs / Unpacking::kInputs;
    at = unpack<false, Unpacking>(at, n_blocks, blocks);
    for (std::size_t r = 0; r < n; r += kByteTile.rows) {
      const TileArgs some = some_rows(t, r, r + kByteTile.rows, n);
      add_unpacked<kLayout, kByteTile.rows>(some, first, n_blocks, blocks, sums + r);
    }
  }
  write_sums(t, n, sums);
}

// Multiplies n rows by kFew, at most kByteTile.rows at a time.
template <Tile kFew>
void tile_in_parts(const TileArgs& t, std::size_t n) {
  if (n <= kByteTile.rows) return kFew(t, n);
  for (std::size_t r = 0; r < n; r += kByteTile.rows) {
    const std::size_t end = std::min<std::size_t>(n, r + kByteTile.rows);
    kFew(some_rows(t, r, end, n), end - r);
  }
}

// Multiplies n rows. If there are at least kEnough, those that fill groups of kGroup rows are
// multiplied by kMany, which unpacks the panel. The others are multiplied by kRest.
template <WeightLayout kLayout, Tile kRest, Tile kMany, std::size_t kGroup, std::size_t kEnough>
void tile_many_rows(const TileArgs& t, std::size_t n) {
  if (n <= kByteTile.rows) return kRest(t, n);
  const TileArgs all = fetching_next_panel(t, kPanelBytes<Unpacking<kLayout>> * t.inputs / kKBlock);
  const std::size_t by_groups = n < kEnough ? 0 : n / kGroup * kGroup;
  if (by_groups != 0) kMany(some_rows(all, 0, by_groups, n), by_groups);
  if (by_groups != n) kRest(some_rows(all, by_groups, n, n), n - by_groups);
}

// For types that must be unpacked: once for many rows, or again for each tile of a few rows.
template <WeightLayout kLayout, Tile kFew>
constexpr Tile kUnpackedTile = tile_many_rows<kLayout, tile_in_parts<kFew>, tile_unpacked<kLayout>,
                                              kByteTile.rows, 2 * kByteTile.rows>;

}  // namespace
}  // namespace stagecraft::STAGECRAFT_ISA
