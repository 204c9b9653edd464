#pragma once

#include <cstring>

#include "operators/k_quant_block.h"
#include "operators/kernels/k_quant_tiles.h"
#include "operators/kernels/matmul_tiles.h"

// A tile of a few rows unpacks a panel while it multiplies. With many rows, the same weights would
// be unpacked again and again. So some kernels unpack up to 256 inputs of a panel once, for all
// rows of a call.

namespace stagecraft::STAGECRAFT_ISA {
namespace {

// Up to 256 inputs of a panel, unpacked: each weight is a byte. A weight is scale * byte + minimum.
struct Blocks {
  static constexpr std::size_t kMaxBlocks = kKBlock / kQuantBlock;
  alignas(64) std::int8_t weights[kMaxBlocks][kQuantBlock / 4][kPanelOutputs][4];
  alignas(64) float scales[kMaxBlocks][kPanelOutputs], minima[kMaxBlocks][kPanelOutputs];

  template <bool kMinima>
  STAGECRAFT_INLINE void make_floats(Blocks&) {}  // they are floats
  STAGECRAFT_INLINE Vec scale(const Blocks& blocks, std::size_t i, std::size_t lane) {
    return load(&blocks.scales[i][lane]);
  }
  STAGECRAFT_INLINE Vec minimum(const Blocks& blocks, std::size_t i, std::size_t lane) {
    return load(&blocks.minima[i][lane]);
  }
};

STAGECRAFT_INLINE void store_ints(std::int32_t* to, Ints numbers) {
  std::memcpy(to, &numbers, sizeof numbers);
}

// 256 inputs of a panel of K-quants, in blocks of kInputs. A weight is
// d * scale * byte - dmin * minimum.
template <std::size_t kInputs>
struct KBlocks {
  static constexpr std::size_t kBlocks = kKBlock / kInputs;
  alignas(64) std::int8_t weights[kBlocks][kInputs / 4][kPanelOutputs][4];
  alignas(64) std::int32_t scales[kBlocks][kPanelOutputs], minima[kBlocks][kPanelOutputs];
  alignas(64) float d[kPanelOutputs], dmin[kPanelOutputs];

  // Replaces each scale by d * scale and each minimum by -dmin * minimum, as floats in the same
  // place. After that, scale() and minimum() return them.
  template <bool kMinima>
  STAGECRAFT_INLINE void make_floats(KBlocks& blocks) {
    for (std::size_t lane = 0; lane < kPanelOutputs; lane += kLanes) {
      const auto multiply = [&](Vec d, std::int32_t* numbers) STAGECRAFT_INLINED {
        store_ints(numbers, as_ints(d * to_float(load_ints(numbers))));
      };
      for (std::size_t i = 0; i < kBlocks; ++i) {
        multiply(load(&blocks.d[lane]), &blocks.scales[i][lane]);
        if constexpr (kMinima) multiply(-load(&blocks.dmin[lane]), &blocks.minima[i][lane]);
      }
    }
  }
  STAGECRAFT_INLINE Vec scale(const KBlocks& blocks, std::size_t i, std::size_t lane) {
    return as_float(load_ints(&blocks.scales[i][lane]));
  }
  STAGECRAFT_INLINE Vec minimum(const KBlocks& blocks, std::size_t i, std::size_t lane) {
    return as_float(load_ints(&blocks.minima[i][lane]));
  }
};

// Stores kLanes words of four bytes. kSigned: after subtracting `bias` from each byte.
template <bool kSigned>
STAGECRAFT_INLINE void put(void* to, Ints weights, std::int32_t bias) {
  typedef std::uint8_t Bytes __attribute__((vector_size(4 * kLanes)));  // may wrap around
  if constexpr (kSigned) weights = (Ints)((Bytes)weights - static_cast<std::uint8_t>(bias));
  std::memcpy(to, &weights, sizeof weights);
}

// How a type is unpacked, in blocks of kInputs inputs:
//
//   kMinima      whether there are minima
//   kBytes       bytes of the panel per 256 inputs
//   kBias        two() returns weights + kBias; kWholeBytes: for dot_q8
//   read_head    reads what stands before 256 inputs
//   read_scales  reads the scales and minima of block b, if they are not yet read
//   two          the i-th eight weights of block b, whose weights are at `at`, for kLanes outputs:
//                those of the inputs from first_of(i) on, and those kApart inputs later
//   end_of       the end of block b
//
// All but two() return where the next part of the panel begins.
//
// Q8_0 to MXFP4, see Block in block_weights.h.
template <WeightLayout kLayout>
struct Unpacking {
  using Packed = Block<kLayout>;
  using Unpacked = Blocks;
  static constexpr std::size_t kInputs = kQuantBlock, kApart = Packed::kNibbles ? 16 : 4;
  static constexpr bool kMinima = Packed::kMinima, kWholeBytes = Packed::kWholeBytes;
  static constexpr std::int32_t kBias = Packed::kBias;
  static constexpr std::size_t kBytes = kKBlock / kQuantBlock * Packed::kBytes;

  STAGECRAFT_INLINE const std::byte* read_head(const std::byte* at, Unpacked&) { return at; }
  STAGECRAFT_INLINE const std::byte* read_scales(const std::byte* at, std::size_t b,
                                                 Unpacked& blocks) {
    for (std::size_t lane = 0; lane < kPanelOutputs; lane += kLanes) {
      store(&blocks.scales[b][lane], Packed::scales(at, lane));
      if constexpr (kMinima) store(&blocks.minima[b][lane], Packed::minima(at, lane));
    }
    return at;
  }
  STAGECRAFT_INLINE TwoFours two(const std::byte* at, std::size_t, int i, std::size_t lane) {
    if constexpr (Packed::kNibbles) return Packed::weights(at, i, lane);
    const std::byte* const fours = at + 4 * (2 * kPanelOutputs * i + lane);
    return {load_ints(fours), load_ints(fours + 4 * kPanelOutputs)};
  }
  STAGECRAFT_INLINE const std::byte* end_of(const std::byte* at, std::size_t) {
    return at + Packed::kBytes;
  }
};

// Reads [32] f16.
STAGECRAFT_INLINE void read_halves(const std::byte* at, float (&to)[kPanelOutputs]) {
  const auto* const halves = reinterpret_cast<const std::uint16_t*>(at);
  for (std::size_t i = 0; i < kPanelOutputs; i += kLanes) store(to + i, load_f16(halves + i));
}

// Q4_K and Q5_K, see k_quant_panel.h, as all K-quants.
template <bool kFifthBit>
struct UnpackingOfMinima {
  using Unpacked = KBlocks<kQuantBlock>;
  static constexpr std::size_t kInputs = kQuantBlock, kApart = 16;
  static constexpr bool kMinima = true, kWholeBytes = false;
  static constexpr std::int32_t kBias = 0;
  static constexpr std::size_t kBlockBytes = kKNibbles + (kFifthBit ? kKBits : 0);
  static constexpr std::size_t kBytes = 2 * kKHalves + 4 * (kKSixes + 2 * kBlockBytes);

  STAGECRAFT_INLINE const std::byte* read_head(const std::byte* at, Unpacked& blocks) {
    read_halves(at, blocks.d);
    read_halves(at + kKHalves, blocks.dmin);
    return at + 2 * kKHalves;
  }
  STAGECRAFT_INLINE const std::byte* read_scales(const std::byte* at, std::size_t b,
                                                 Unpacked& blocks) {
    if (b % 2 != 0) return at;
    for (std::size_t lane = 0; lane < kPanelOutputs; lane += kLanes) {
      const auto [number] = FourNumbers::read(at + lane);
      for (std::size_t i = 0; i < 2; ++i) {
        store_ints(&blocks.scales[b + i][lane], number[2 * i]);
        store_ints(&blocks.minima[b + i][lane], number[2 * i + 1]);
      }
    }
    return at + kKSixes;
  }
  STAGECRAFT_INLINE TwoFours two(const std::byte* at, std::size_t, int i, std::size_t lane) {
    return kFifthBit ? five_bits(at, i, lane) : nibbles(at, i, lane);
  }
  STAGECRAFT_INLINE const std::byte* end_of(const std::byte* at, std::size_t) {
    return at + kBlockBytes;
  }
};

template <>
struct Unpacking<WeightLayout::Q4_K> : UnpackingOfMinima<false> {};
template <>
struct Unpacking<WeightLayout::Q5_K> : UnpackingOfMinima<true> {};

// Q2_K, Q3_K and Q6_K: a block is half of 32 inputs.
template <WeightLayout kLayout>
struct UnpackingOfHalves {
  using Weights = WeightsOfHalves<kLayout>;
  using Unpacked = KBlocks<kQuantBlock / 2>;
  static constexpr std::size_t kInputs = kQuantBlock / 2, kApart = 4;
  static constexpr bool kMinima = Weights::kMinima, kWholeBytes = false;
  static constexpr std::int32_t kBias = Weights::kBias;
  // Per kScales scales: their bytes, then the weights of kScales blocks.
  static constexpr std::size_t kScales = kLayout == WeightLayout::Q3_K ? 4 : 2;
  static constexpr std::size_t kScaleBytes =
      kLayout == WeightLayout::Q3_K ? kKSixes : 2 * kPanelOutputs;
  static constexpr std::size_t kBytes =
      Weights::kHeadBytes + 8 * Weights::kBytes + 16 / kScales * kScaleBytes;

  STAGECRAFT_INLINE const std::byte* read_head(const std::byte* at, Unpacked& blocks) {
    read_halves(at, blocks.d);
    if constexpr (kMinima) read_halves(at + kKHalves, blocks.dmin);
    return at + Weights::kHeadBytes;
  }
  STAGECRAFT_INLINE const std::byte* read_scales(const std::byte* at, std::size_t b,
                                                 Unpacked& blocks) {
    if (b % kScales != 0) return at;
    for (std::size_t lane = 0; lane < kPanelOutputs; lane += kLanes) {
      if constexpr (kLayout == WeightLayout::Q3_K) {
        const auto [number] = FourNumbers::read(at + lane);
        for (std::size_t i = 0; i < kScales; ++i) {
          store_ints(&blocks.scales[b + i][lane], number[i] - 32);
        }
      } else {
        for (std::size_t i = 0; i < kScales; ++i) {
          const Ints byte = load_u8(at + kPanelOutputs * i + lane);
          store_ints(&blocks.scales[b + i][lane], kMinima ? byte & 15 : byte << 24 >> 24);
          if constexpr (kMinima) store_ints(&blocks.minima[b + i][lane], byte >> 4);
        }
      }
    }
    return at + kScaleBytes;
  }
  STAGECRAFT_INLINE TwoFours two(const std::byte* at, std::size_t b, int i, std::size_t lane) {
    const int half = static_cast<int>(b % 2);
    return {Weights::four(at, half, 2 * i, lane), Weights::four(at, half, 2 * i + 1, lane)};
  }
  STAGECRAFT_INLINE const std::byte* end_of(const std::byte* at, std::size_t b) {
    return b % 2 == 0 ? at : at + Weights::kBytes;
  }
};

template <>
struct Unpacking<WeightLayout::Q2_K> : UnpackingOfHalves<WeightLayout::Q2_K> {};
template <>
struct Unpacking<WeightLayout::Q3_K> : UnpackingOfHalves<WeightLayout::Q3_K> {};
template <>
struct Unpacking<WeightLayout::Q6_K> : UnpackingOfHalves<WeightLayout::Q6_K> {};

template <>
struct Unpacking<WeightLayout::IQ4_XS> {
  using Unpacked = KBlocks<kQuantBlock>;
  static constexpr std::size_t kInputs = kQuantBlock, kApart = 16;
  static constexpr bool kMinima = false, kWholeBytes = true;
  static constexpr std::int32_t kBias = kByteBias;
  static constexpr std::size_t kBytes = kKHalves + 2 * (kKSixes + 4 * kKNibbles);

  STAGECRAFT_INLINE const std::byte* read_head(const std::byte* at, Unpacked& blocks) {
    read_halves(at, blocks.d);
    return at + kKHalves;
  }
  STAGECRAFT_INLINE const std::byte* read_scales(const std::byte* at, std::size_t b,
                                                 Unpacked& blocks) {
    if (b % 4 != 0) return at;
    for (std::size_t lane = 0; lane < kPanelOutputs; lane += kLanes) {
      const auto [number] = FourNumbers::read(at + lane);
      for (std::size_t i = 0; i < 4; ++i) store_ints(&blocks.scales[b + i][lane], number[i] - 32);
    }
    return at + kKSixes;
  }
  STAGECRAFT_INLINE TwoFours two(const std::byte* at, std::size_t, int i, std::size_t lane) {
    return looked_up(kNonlinearBytes, at, i, lane);
  }
  STAGECRAFT_INLINE const std::byte* end_of(const std::byte* at, std::size_t) {
    return at + kKNibbles;
  }
};

// How many times two() is called per block.
template <class Unpacking>
constexpr int kTwos = Unpacking::kInputs / 8;
template <class Unpacking>
constexpr std::size_t first_of(int i) {
  return static_cast<std::size_t>(i) * (Unpacking::kApart == 4 ? 8 : 4);
}

// Unpacks the n blocks at `at` and returns where the next one begins. kSigned: without the bias.
template <bool kSigned, class Unpacking>
STAGECRAFT_INLINE const std::byte* unpack(const std::byte* at, std::size_t n,
                                          typename Unpacking::Unpacked& blocks) {
  at = Unpacking::read_head(at, blocks);
  for (std::size_t b = 0; b < n; ++b) {
    at = Unpacking::read_scales(at, b, blocks);
    for (std::size_t lane = 0; lane < kPanelOutputs; lane += kLanes) {
      for (int i = 0; i < kTwos<Unpacking>; ++i) {
        const auto [first, second] = Unpacking::two(at, b, i, lane);
        const std::size_t four = first_of<Unpacking>(i) / 4;
        put<kSigned>(blocks.weights[b][four][lane], first, Unpacking::kBias);
        put<kSigned>(blocks.weights[b][four + Unpacking::kApart / 4][lane], second,
                     Unpacking::kBias);
      }
    }
    at = Unpacking::end_of(at, b);
  }
  return at;
}

// Multiplies Rows rows with n unpacked blocks, the first of which begins at input `first` of the
// rows. sums: those of these rows so far.
template <WeightLayout kLayout, int Rows>
STAGECRAFT_INLINE void add_unpacked(const TileArgs& t, std::size_t first, std::size_t n,
                                    const typename Unpacking<kLayout>::Unpacked& blocks,
                                    float (*sums)[kPanelOutputs]) {
  using Unpacking = Unpacking<kLayout>;
  using Unpacked = typename Unpacking::Unpacked;
  constexpr std::size_t Vecs = kByteTile.vecs_of(Rows);
  for (std::size_t lane = 0; lane < kPanelOutputs; lane += Vecs * kLanes) {
    Vec acc[Rows][Vecs];
    STAGECRAFT_UNROLL
    for (int r = 0; r < Rows; ++r) {
      STAGECRAFT_UNROLL
      for (std::size_t v = 0; v < Vecs; ++v) acc[r][v] = load(&sums[r][lane + kLanes * v]);
    }
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t input = first + i * Unpacking::kInputs, b = input / kQuantBlock;
      const auto sum_of = [&](int r) STAGECRAFT_INLINED {
        const BlockSums& of = t.sums[r * t.block_stride + b];
        if constexpr (Unpacking::kInputs == kQuantBlock) return of.all;
        return input % kQuantBlock == 0 ? of.first_half : of.all - of.first_half;
      };
      Ints dot[Rows][Vecs];
      begin_dots(Unpacking::kBias, sum_of, dot);
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
        add_scaled_dots(t, b, v, Unpacked::scale(blocks, i, output), dot, acc);
        if constexpr (Unpacking::kMinima) {
          add_minima(t, b, v, -Unpacked::minimum(blocks, i, output), sum_of, acc);
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

// Rows [first, end) of the n rows of t, which are bytes, with their share of the memory to
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
  typename Unpacking::Unpacked blocks;
  const std::byte* at = t.panel;
  for (std::size_t first = 0; first < t.inputs; first += kKBlock) {
    const std::size_t inputs = std::min(kKBlock, t.inputs - first);
    const std::size_t n_blocks = inputs / Unpacking::kInputs;
    at = unpack<false, Unpacking>(at, n_blocks, blocks);
    Unpacking::Unpacked::template make_floats<Unpacking::kMinima>(blocks);
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
  const TileArgs all = fetching_next_panel(t, Unpacking<kLayout>::kBytes * t.inputs / kKBlock);
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
