#pragma once

#include <algorithm>

#include "operators/kernels/unpacked_blocks.h"

// Products by AMX (Intel 64 Architectures Software Developer's Manual, volume 1, chapter 18). A
// processor with AMX has eight registers of 16 rows of 64 bytes, and one instruction multiplies two
// of them:
//
//     C [16 rows][16 outputs]  +=  A [16 rows][64 bytes of inputs]  *  B [inputs][16 outputs]
//
// In B, the inputs of one 32-bit word lie side by side. The panels of panel_matrix.h have this
// order already. Two tiles of rows times two tiles of weights make four tiles of sums:
//
//                  B0    B1            32 outputs
//               +-----+-----+
//        A0     | C0  | C1  |          each A and each B is loaded once for two products
//        A1     | C2  | C3  |
//     32 rows   +-----+-----+
//
// C0 to C3 are the registers 0 to 3, A0 and A1 are 4 and 5, B0 and B1 are 6 and 7. The code has
// these numbers as literals because the compiler accepts nothing else. For bytes, one block of 16
// rows has C0, C1 and A0, and the next one C2, C3 and A1.
//
// The sums of a row do not depend on the other rows of its tile. So a row has the same bits alone
// and among a thousand rows.

namespace stagecraft::STAGECRAFT_ISA {
namespace {

constexpr std::size_t kAmxRows = 16;      // rows of a tile
constexpr std::size_t kAmxRowBytes = 64;  // bytes of a row of a tile
constexpr std::size_t kAmxOutputs = 16;   // outputs of a tile of weights
// The most rows of a call. Each call loads its panel into L1.
constexpr std::size_t kAmxMostRows = kMostTileRows;

// The operand of LDTILECFG: the number of rows of each register, and of bytes per row.
struct alignas(64) TileShapes {
  std::uint8_t palette = 1, start_row = 0, zeros[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};

  STAGECRAFT_INLINE void set(TileShapes& shapes, int tile, std::size_t n_rows, std::size_t bytes) {
    shapes.rows[tile] = static_cast<std::uint8_t>(n_rows);
    shapes.row_bytes[tile] = static_cast<std::uint16_t>(n_rows == 0 ? 0 : bytes);
  }
};

// GCC's intrinsics do not tell the compiler which memory they read. After this call, all writes to
// `memory` are done before the next intrinsic.
STAGECRAFT_INLINE void finish_writes(const void* memory) {
  asm volatile("" : : "r"(memory) : "memory");
}

STAGECRAFT_INLINE void set_tiles(const TileShapes& shapes) {
  finish_writes(&shapes);
  _tile_loadconfig(&shapes);
}

// Prefetches the next panel into L2, spread evenly while this one is multiplied.
struct Ahead {
  const std::byte* at;
  std::size_t bytes_per_step;

  STAGECRAFT_INLINE void fetch(Ahead& ahead) {
    for (std::size_t i = 0; i < ahead.bytes_per_step; i += 64) {
      prefetch<64, kIntoL2>(ahead.at + i);
    }
    ahead.at += ahead.bytes_per_step;
  }
};

// ---- bf16 ---------------------------------------------------------------------------------------

constexpr std::size_t kBf16Inputs = kAmxRowBytes / 2;      // inputs of a tile
constexpr std::size_t kBf16PairBytes = 4 * kPanelOutputs;  // bytes of two inputs of a panel

// The inputs after the last whole tile, of up to 32 rows (a) and of the panel (b). Zeros fill the
// rest of the tile.
struct Bf16Rest {
  alignas(64) std::uint16_t a[2 * kAmxRows][kBf16Inputs];
  alignas(64) std::byte b[kBf16Inputs / 2][kBf16PairBytes];
};

// All rows of a call are multiplied with the same part of the panel, which stays in L1 meanwhile. A
// panel of at most kBf16Whole inputs (40 KB) is one part. Others are cut into parts of kBf16Depth
// inputs (32 KB): between two parts, sums are stored and loaded again, so larger parts would be
// better, but smaller ones leave room for what else is in L1. Rows are loaded from L2 with a hint
// (TILELOADDT1) not to keep them in L1.
constexpr std::size_t kBf16Whole = 640, kBf16Depth = 512;

// C += A * B for one tile's depth of inputs.
template <bool kBothHalves>
STAGECRAFT_INLINE void multiply_bf16(const std::uint16_t* a, std::size_t row_bytes,
                                     const std::byte* b) {
  _tile_loadd(6, b, kBf16PairBytes);
  _tile_stream_loadd(4, a, row_bytes);
  _tile_loadd(7, b + kAmxRowBytes, kBf16PairBytes);
  _tile_dpbf16ps(0, 4, 6);
  _tile_dpbf16ps(1, 4, 7);
  if constexpr (kBothHalves) {
    _tile_stream_loadd(5, reinterpret_cast<const std::byte*>(a) + kAmxRows * row_bytes, row_bytes);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
}

// Loads C, 16 rows of sums, or 32 with kBothHalves. from: null for zeros.
template <bool kBothHalves>
STAGECRAFT_INLINE void load_sums(const float* from, std::size_t stride) {
  if (from == nullptr) {
    _tile_zero(0);
    _tile_zero(1);
    if constexpr (kBothHalves) {
      _tile_zero(2);
      _tile_zero(3);
    }
    return;
  }
  _tile_loadd(0, from, 4 * stride);
  _tile_loadd(1, from + kAmxOutputs, 4 * stride);
  if constexpr (kBothHalves) {
    _tile_loadd(2, from + kAmxRows * stride, 4 * stride);
    _tile_loadd(3, from + kAmxRows * stride + kAmxOutputs, 4 * stride);
  }
}

template <bool kBothHalves>
STAGECRAFT_INLINE void store_sums(float* to, std::size_t stride) {
  _tile_stored(0, to, 4 * stride);
  _tile_stored(1, to + kAmxOutputs, 4 * stride);
  if constexpr (kBothHalves) {
    _tile_stored(2, to + kAmxRows * stride, 4 * stride);
    _tile_stored(3, to + kAmxRows * stride + kAmxOutputs, 4 * stride);
  }
}

// Multiplies inputs [begin, end) of 16 rows of t, from row `first` on, or of 32 rows with
// kBothHalves. (The registers may be set for fewer.) t.out has the sums of the inputs before.
template <bool kBothHalves>
STAGECRAFT_INLINE void tile_amx_rows(const TileArgs& t, std::size_t first, std::size_t begin,
                                     std::size_t end, Ahead& ahead, const Bf16Rest& rest) {
  const auto* a = static_cast<const std::uint16_t*>(t.rows) + first * t.row_stride;
  const std::size_t whole = t.inputs / kBf16Inputs * kBf16Inputs;
  float* const out = t.out + first * t.out_stride;
  load_sums<kBothHalves>(begin == 0 && !t.add ? nullptr : out, t.out_stride);
  for (std::size_t k = begin; k < std::min(end, whole); k += kBf16Inputs) {
    Ahead::fetch(ahead);
    multiply_bf16<kBothHalves>(a + k, 2 * t.row_stride, t.panel + k / 2 * kBf16PairBytes);
  }
  if (whole < end) multiply_bf16<kBothHalves>(rest.a[0], kAmxRowBytes, rest.b[0]);
  store_sums<kBothHalves>(out, t.out_stride);
}

// Multiplies few rows with vectors, and gets the same bits as with tiles: the AMX instruction sums
// the even and the odd of its 32 inputs separately, from 0, and adds both to its sum. It treats
// subnormal inputs and results as 0.
template <int Rows>
[[gnu::noinline]] void tile_few_bf16(const TileArgs& t) {
  constexpr bool kFromOut = true;
  tile<Rows, kVecs, kFromOut>(t, [&](std::size_t, Vec(&acc)[Rows][kVecs]) STAGECRAFT_INLINED {
    const std::byte* w = t.panel;
    for (std::size_t first = 0; first < t.inputs; first += kBf16Inputs) {
      const std::size_t end = std::min(t.inputs, first + kBf16Inputs);
      Vec even[Rows][kVecs] = {}, odd[Rows][kVecs] = {};
      for (std::size_t k = first; k < end; k += 2, w += kBf16PairBytes) {
        prefetch_ahead<1, kBf16PairBytes>(t, w);
        Vec low[kVecs], high[kVecs];
        STAGECRAFT_UNROLL
        for (std::size_t v = 0; v < kVecs; ++v) {
          const Ints pair = load_ints(w + 4 * kLanes * v);
          low[v] = as_float(pair << 16);
          high[v] = as_float(pair & -65536);
        }
        STAGECRAFT_UNROLL
        for (int r = 0; r < Rows; ++r) {
          const auto* a = static_cast<const std::uint16_t*>(t.rows) + r * t.row_stride + k;
          const Ints pair = broadcast(load_as<std::int32_t>(a));
          const Vec x = as_float(pair << 16), y = as_float(pair & -65536);
          STAGECRAFT_UNROLL
          for (std::size_t v = 0; v < kVecs; ++v) {
            even[r][v] = fma(x, low[v], even[r][v]);
            odd[r][v] = fma(y, high[v], odd[r][v]);
          }
        }
      }
      STAGECRAFT_UNROLL
      for (int r = 0; r < Rows; ++r) {
        STAGECRAFT_UNROLL
        for (std::size_t v = 0; v < kVecs; ++v) acc[r][v] += even[r][v] + odd[r][v];
      }
    }
  });
}

constexpr std::size_t kFewBf16 = 4;

void tile_few_bf16(const TileArgs& t, std::size_t n) {
  static constexpr void (*kTile[])(const TileArgs&) = {tile_few_bf16<1>, tile_few_bf16<2>,
                                                       tile_few_bf16<3>, tile_few_bf16<4>};
  constexpr unsigned kFlushToZero = 1u << 15, kDenormalsAreZeros = 1u << 6;
  const unsigned control = _mm_getcsr();
  _mm_setcsr(control | kFlushToZero | kDenormalsAreZeros);
  kTile[n - 1](t);
  _mm_setcsr(control);
}

// Sets the registers for up to 32 rows.
STAGECRAFT_INLINE void set_bf16_tiles(std::size_t rows) {
  const std::size_t rows0 = std::min(rows, kAmxRows);
  TileShapes shapes;
  for (const int tile : {0, 1, 4}) TileShapes::set(shapes, tile, rows0, kAmxRowBytes);
  for (const int tile : {2, 3, 5}) TileShapes::set(shapes, tile, rows - rows0, kAmxRowBytes);
  for (const int tile : {6, 7}) TileShapes::set(shapes, tile, kAmxRows, kAmxRowBytes);
  set_tiles(shapes);
}

void tile_amx_bf16(const TileArgs& t, std::size_t n) {
  if (n <= kFewBf16) return tile_few_bf16(t, n);
  const std::size_t whole = t.inputs / kBf16Inputs * kBf16Inputs;
  const std::size_t steps = (n + 2 * kAmxRows - 1) / (2 * kAmxRows) * (t.inputs / kBf16Inputs);
  const TileArgs all = n > 2 * kAmxRows ? fetching_next_panel(t, t.inputs / 2 * kBf16PairBytes) : t;
  Ahead ahead{all.ahead, steps == 0 ? 0 : all.ahead_step * t.inputs / steps};
  Bf16Rest rest;
  if (whole < t.inputs) {
    std::memset(&rest, 0, sizeof rest);
    std::memcpy(rest.b, t.panel + whole / 2 * kBf16PairBytes,
                (t.inputs - whole) / 2 * kBf16PairBytes);
  }
  const std::size_t depth = t.inputs <= kBf16Whole ? t.inputs : kBf16Depth;
  std::size_t set_rows = 0;  // rows for which the shapes are set
  for (std::size_t begin = 0; begin < t.inputs; begin += depth) {
    const std::size_t end = std::min(t.inputs, begin + depth);
    for (std::size_t first = 0; first < n; first += 2 * kAmxRows) {
      const std::size_t rows = std::min(n - first, 2 * kAmxRows);
      if (rows != set_rows) set_bf16_tiles(rows);
      set_rows = rows;
      for (std::size_t r = 0; whole < end && r < rows; ++r) {
        const auto* row = static_cast<const std::uint16_t*>(t.rows) + (first + r) * t.row_stride;
        std::memcpy(rest.a[r], row + whole, 2 * (t.inputs - whole));
      }
      finish_writes(&rest);
      if (rows > kAmxRows) {
        tile_amx_rows<true>(t, first, begin, end, ahead, rest);
      } else {
        tile_amx_rows<false>(t, first, begin, end, ahead, rest);
      }
    }
  }
  _tile_release();
}

// ---- bytes --------------------------------------------------------------------------------------

// Bytes have a scale per 32 inputs, so a tile has that many bytes per row: one block. Its sums are
// exact, so they have the same bits as those of dot_q8 and dot_small, which multiply the rows that
// do not fill a tile.
//
// A step takes 16 rows and 8 blocks, and has two phases: AMX instructions multiply the blocks, then
// vector instructions add the products to the sums of the rows. If the two kinds of instructions
// alternate more often, they take longer: for about 130 cycles after an AMX instruction, a Xeon
// (family 6, model 207) computes only half as many vectors of 512 bits.

constexpr std::size_t kStepBlocks = 8;

using AmxBlocks = Blocks<kQuantBlock>;

// The products of 16 rows with 32 outputs for the blocks of a step, before scales are applied.
using Dots = std::int32_t[kStepBlocks][kVecs][kAmxRows][kAmxOutputs];
static_assert(kAmxOutputs == kLanes);

STAGECRAFT_INLINE void store_dots(std::size_t i, Dots& dots) {
  if (i % 2 == 0) {
    _tile_stored(0, dots[i][0], kAmxRowBytes);
    _tile_stored(1, dots[i][1], kAmxRowBytes);
  } else {
    _tile_stored(2, dots[i][0], kAmxRowBytes);
    _tile_stored(3, dots[i][1], kAmxRowBytes);
  }
}

// The products of 16 rows with 32 outputs for one block: registers c0 and c1 = a * weights. A
// macro, because the register numbers must be literals.
#define STAGECRAFT_DOTS(c0, c1, a, rows, row_stride, weights)   \
  do {                                                          \
    _tile_stream_loadd(a, rows, row_stride);                    \
    _tile_zero(c0);                                             \
    _tile_loadd(6, weights[0][0], 4 * kPanelOutputs);           \
    _tile_dpbssd(c0, a, 6);                                     \
    _tile_zero(c1);                                             \
    _tile_loadd(7, weights[0][kAmxOutputs], 4 * kPanelOutputs); \
    _tile_dpbssd(c1, a, 7);                                     \
  } while (false)

// Multiplies 16 rows with n blocks, from block `first` on. Each product is stored one block later:
// a store right behind its product would wait for it, and so would the AMX instructions behind the
// store. So each of two neighbouring blocks has registers of its own.
STAGECRAFT_INLINE void make_dots(const std::int8_t* rows, std::size_t row_stride,
                                 const AmxBlocks& blocks, std::size_t first, std::size_t n,
                                 Dots& dots) {
  rows += first * kQuantBlock;
  for (std::size_t i = 0; i < n; ++i, rows += kQuantBlock) {
    if (i % 2 == 0) {
      STAGECRAFT_DOTS(0, 1, 4, rows, row_stride, blocks.weights[first + i]);
    } else {
      STAGECRAFT_DOTS(2, 3, 5, rows, row_stride, blocks.weights[first + i]);
    }
    if (i > 0) store_dots(i - 1, dots);
  }
  store_dots(n - 1, dots);
}
#undef STAGECRAFT_DOTS

// The scales of 16 rows for up to 256 inputs, side by side: in the workspace, they are so far apart
// that reading them from there takes longer than copying them first.
using RowScales = float[kAmxRows][AmxBlocks::kMost];

STAGECRAFT_INLINE void copy_scales(const float* from, std::size_t stride, std::size_t n,
                                   RowScales& scales) {
  static_assert(sizeof scales[0] == sizeof(__m256));
  const auto some = static_cast<__mmask8>((1u << n) - 1);
  for (std::size_t r = 0; r < kAmxRows; ++r) {
    _mm256_storeu_ps(scales[r], _mm256_maskz_loadu_ps(some, from + r * stride));
  }
}

// The sums of 16 rows. The first step begins with 0, and the last one writes to `out`; in between,
// they are kept in `sums`.
struct StepSums {
  float (*sums)[kPanelOutputs];
  bool is_first, is_last;
  float* out;
};

// Adds the products of 16 rows times both scales, plus the minima times the rows' sums, for n
// blocks from block `first` on.
template <WeightLayout kLayout>
STAGECRAFT_INLINE void add_dots(const TileArgs& t, const Dots& dots, std::size_t first,
                                std::size_t n, const AmxBlocks& blocks, const RowScales& scales,
                                const RowSums<Unpacking<kLayout>>* row_sums, const StepSums& step) {
  for (std::size_t v = 0; v < kVecs; ++v) {
    const std::size_t lane = v * kLanes;
    Vec acc[kAmxRows] = {};
    if (!step.is_first) {
      STAGECRAFT_UNROLL
      for (std::size_t r = 0; r < kAmxRows; ++r) acc[r] = load(&step.sums[r][lane]);
    }
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t block = first + i;
      const Vec d = load(&blocks.scales[block][lane]);
      STAGECRAFT_UNROLL
      for (std::size_t r = 0; r < kAmxRows; ++r) {
        acc[r] = fma(to_float(load_ints(dots[i][v][r])), d * broadcast(scales[r][block]), acc[r]);
      }
      if constexpr (Unpacking<kLayout>::kMinima) {
        const Vec minimum = load(&blocks.minima[block][lane]);
        STAGECRAFT_UNROLL
        for (std::size_t r = 0; r < kAmxRows; ++r) {
          acc[r] = fma(minimum, broadcast(row_sums[r][block]), acc[r]);
        }
      }
    }
    STAGECRAFT_UNROLL
    for (std::size_t r = 0; r < kAmxRows; ++r) {
      float* const out = step.is_last ? step.out + r * t.out_stride + lane : &step.sums[r][lane];
      write_sum(step.is_last && t.add, acc[r], out);
    }
  }
}

// n: a multiple of 16.
template <WeightLayout kLayout>
void tile_amx_blocks(const TileArgs& t, std::size_t n) {
  TileShapes shapes;
  for (const int tile : {0, 1, 2, 3}) TileShapes::set(shapes, tile, kAmxRows, kAmxRowBytes);
  for (const int tile : {4, 5}) TileShapes::set(shapes, tile, kAmxRows, kQuantBlock);
  for (const int tile : {6, 7}) TileShapes::set(shapes, tile, kQuantBlock / 4, kAmxRowBytes);
  set_tiles(shapes);
  alignas(64) float sums[kAmxMostRows][kPanelOutputs];
  RowSums<Unpacking<kLayout>> row_sums[kAmxMostRows];
  AmxBlocks blocks;
  RowScales scales;
  alignas(64) Dots dots;
  const std::byte* at = t.panel;
  Ahead ahead{t.ahead, t.ahead_step * std::min(t.inputs, kKBlock) / (n / kAmxRows)};
  for (std::size_t first = 0; first < t.inputs; first += kKBlock) {
    const std::size_t inputs = std::min(kKBlock, t.inputs - first);
    const std::size_t n_blocks = inputs / kQuantBlock;
    at = unpack<true, Unpacking<kLayout>>(at, n_blocks, blocks);
    if constexpr (Unpacking<kLayout>::kMinima) {
      sum_blocks<Unpacking<kLayout>>(t, n, first, n_blocks, row_sums);
    }
    finish_writes(&blocks);
    for (std::size_t r = 0; r < n; r += kAmxRows) {
      Ahead::fetch(ahead);
      const auto* const rows = static_cast<const std::int8_t*>(t.rows) + r * t.row_stride + first;
      copy_scales(&t.scales[r * t.block_stride + first / kQuantBlock], t.block_stride, n_blocks,
                  scales);
      for (std::size_t i = 0; i < n_blocks; i += kStepBlocks) {
        const std::size_t n_step = std::min(kStepBlocks, n_blocks - i);
        const StepSums step{sums + r, first == 0 && i == 0,
                            first + inputs == t.inputs && i + n_step == n_blocks,
                            t.out + r * t.out_stride};
        make_dots(rows, t.row_stride, blocks, i, n_step, dots);
        add_dots<kLayout>(t, dots, i, n_step, blocks, scales, row_sums + r, step);
      }
    }
  }
  _tile_release();
}

// The rows that fill tiles are multiplied by tiles, if they fill at least two. With one, the phases
// would wait for each other.
template <WeightLayout kLayout, Tile kRest>
constexpr Tile kAmxTile =
    tile_many_rows<kLayout, kRest, tile_amx_blocks<kLayout>, kAmxRows, 2 * kAmxRows>;

// ---- how fast it could be -----------------------------------------------------------------------

double peak_amx_bf16(std::size_t rounds, float* sink) {
  TileShapes shapes;
  for (int tile = 0; tile < 8; ++tile) TileShapes::set(shapes, tile, kAmxRows, kAmxRowBytes);
  set_tiles(shapes);
  const std::size_t turns = rounds / 16;  // one instruction does as much as 16 of dot_bf16
  for (std::size_t i = 0; i < turns; ++i) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  alignas(64) float sums[kAmxRows][kAmxOutputs];
  _tile_stored(0, sums, kAmxRowBytes);
  _tile_release();
  *sink = sums[0][0];
  return 4.0 * 2.0 * kAmxRows * kAmxOutputs * kBf16Inputs * static_cast<double>(turns);
}

}  // namespace
}  // namespace stagecraft::STAGECRAFT_ISA
