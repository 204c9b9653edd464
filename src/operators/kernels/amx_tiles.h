#pragma once

#include <algorithm>

#include "operators/kernels/matmul_tiles.h"

// Products by AMX (Intel 64 Architectures Software Developer's Manual, volume 1, chapter 18). A
// processor with AMX has eight registers of 16 rows of 64 bytes, and one instruction multiplies two
// of them:
//
//     C [16 rows][16 outputs]  +=  A [16 rows][64 bytes of inputs]  *  B [inputs][16 outputs]
//
// B has the inputs of one 32-bit word side by side, as the panels of panel_matrix.h do: no panel
// needs another layout. Two tiles of rows and two of weights make four of sums:
//
//                  B0    B1            32 outputs
//               +-----+-----+
//        A0     | C0  | C1  |          each A and each B is loaded once for two products
//        A1     | C2  | C3  |
//     32 rows   +-----+-----+
//
// C0 to C3 are the registers 0 to 3, A0 and A1 are 4 and 5, B0 and B1 are 6 and 7: the compiler
// wants literal numbers.
//
// The sums of a row do not depend on the other rows of its tile. So one row and a thousand get the
// same bits.

namespace stagecraft::STAGECRAFT_ISA {
namespace {

constexpr std::size_t kAmxRows = 16;      // of a tile
constexpr std::size_t kAmxRowBytes = 64;  // of a row of a tile
constexpr std::size_t kAmxOutputs = 16;   // of a tile of weights
constexpr std::size_t kAmxMostRows = 96;  // of one call: setting the tiles takes 160 cycles

// What LDTILECFG reads: the rows, and the bytes of a row, of each register.
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

// The next panel's bytes are prefetched evenly while this one is multiplied, as fetch() does it.
struct Ahead {
  const std::byte* at;
  std::size_t bytes_per_step;

  STAGECRAFT_INLINE void fetch(Ahead& ahead) {
    for (std::size_t i = 0; i < ahead.bytes_per_step; i += 64) __builtin_prefetch(ahead.at + i);
    ahead.at += ahead.bytes_per_step;
  }
};

// ---- bf16 ---------------------------------------------------------------------------------------

constexpr std::size_t kBf16Inputs = kAmxRowBytes / 2;      // of a tile
constexpr std::size_t kBf16PairBytes = 4 * kPanelOutputs;  // of a panel: two inputs

// The inputs after the last whole tile, of up to 32 rows (a) and of the panel (b). Zeros fill the
// rest of the tile.
struct Bf16Rest {
  alignas(64) std::uint16_t a[2 * kAmxRows][kBf16Inputs];
  alignas(64) std::byte b[kBf16Inputs / 2][kBf16PairBytes];
};

// C += A * B for one tile's depth of inputs.
template <bool kBothHalves>
STAGECRAFT_INLINE void multiply_bf16(const std::uint16_t* a, std::size_t row_bytes,
                                     const std::byte* b) {
  _tile_loadd(6, b, kBf16PairBytes);
  _tile_loadd(4, a, row_bytes);
  _tile_loadd(7, b + kAmxRowBytes, kBf16PairBytes);
  _tile_dpbf16ps(0, 4, 6);
  _tile_dpbf16ps(1, 4, 7);
  if constexpr (kBothHalves) {
    _tile_loadd(5, reinterpret_cast<const std::byte*>(a) + kAmxRows * row_bytes, row_bytes);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
}

// Rows [first, first + n) of t, n at most 16, or 32 with kBothHalves.
template <bool kBothHalves>
STAGECRAFT_INLINE void tile_amx_rows(const TileArgs& t, std::size_t first, std::size_t n,
                                     Ahead& ahead, const Bf16Rest& rest) {
  const auto* a = static_cast<const std::uint16_t*>(t.rows) + first * t.row_stride;
  const std::size_t whole = t.inputs / kBf16Inputs * kBf16Inputs;
  _tile_zero(0);
  _tile_zero(1);
  if constexpr (kBothHalves) {
    _tile_zero(2);
    _tile_zero(3);
  }
  const std::byte* b = t.panel;
  for (std::size_t k = 0; k < whole; k += kBf16Inputs, b += kBf16Inputs / 2 * kBf16PairBytes) {
    Ahead::fetch(ahead);
    multiply_bf16<kBothHalves>(a + k, 2 * t.row_stride, b);
  }
  if (whole < t.inputs) multiply_bf16<kBothHalves>(rest.a[0], kAmxRowBytes, rest.b[0]);

  alignas(64) float sums[2 * kAmxRows][kPanelOutputs];
  float* const to = t.add ? sums[0] : t.out + first * t.out_stride;
  const std::size_t stride = t.add ? kPanelOutputs : t.out_stride;
  _tile_stored(0, to, 4 * stride);
  _tile_stored(1, to + kAmxOutputs, 4 * stride);
  if constexpr (kBothHalves) {
    _tile_stored(2, to + kAmxRows * stride, 4 * stride);
    _tile_stored(3, to + kAmxRows * stride + kAmxOutputs, 4 * stride);
  }
  for (std::size_t r = 0; t.add && r < n; ++r) {
    float* const out = t.out + (first + r) * t.out_stride;
    for (std::size_t v = 0; v < kVecs; ++v) {
      store(out + v * kLanes, load(out + v * kLanes) + load(&sums[r][v * kLanes]));
    }
  }
}

void tile_amx_bf16(const TileArgs& t, std::size_t n) {
  const std::size_t whole = t.inputs / kBf16Inputs * kBf16Inputs;
  const std::size_t steps = (n + 2 * kAmxRows - 1) / (2 * kAmxRows) * (t.inputs / kBf16Inputs);
  Ahead ahead{t.ahead, steps == 0 ? 0 : t.ahead_step * t.inputs / steps};
  Bf16Rest rest;
  if (whole < t.inputs) {
    std::memset(&rest, 0, sizeof rest);
    std::memcpy(rest.b, t.panel + whole / 2 * kBf16PairBytes,
                (t.inputs - whole) / 2 * kBf16PairBytes);
  }
  std::size_t set_rows = 0;  // for which the shapes are set
  for (std::size_t first = 0; first < n; first += 2 * kAmxRows) {
    const std::size_t rows = std::min(n - first, 2 * kAmxRows);
    const std::size_t rows0 = std::min(rows, kAmxRows), rows1 = rows - rows0;
    if (rows != set_rows) {
      TileShapes shapes;
      for (const int tile : {0, 1, 4}) TileShapes::set(shapes, tile, rows0, kAmxRowBytes);
      for (const int tile : {2, 3, 5}) TileShapes::set(shapes, tile, rows1, kAmxRowBytes);
      for (const int tile : {6, 7}) TileShapes::set(shapes, tile, kAmxRows, kAmxRowBytes);
      set_tiles(shapes);
      set_rows = rows;
    }
    for (std::size_t r = 0; whole < t.inputs && r < rows; ++r) {
      const auto* row = static_cast<const std::uint16_t*>(t.rows) + (first + r) * t.row_stride;
      std::memcpy(rest.a[r], row + whole, 2 * (t.inputs - whole));
    }
    finish_writes(&rest);
    if (rows1 != 0) {
      tile_amx_rows<true>(t, first, rows, ahead, rest);
    } else {
      tile_amx_rows<false>(t, first, rows, ahead, rest);
    }
  }
  _tile_release();
}

// ---- bytes --------------------------------------------------------------------------------------

// Bytes have a scale per 32 inputs, so a tile of 32 bytes per row is one block. Its sums are exact:
// the bits are those of dot_q8 and dot_small, which multiply the rows that do not fill a tile.
//
// Some blocks of a panel, taken apart once for all rows of a call.
struct Blocks {
  static constexpr std::size_t kMost = 8;
  alignas(64) std::int8_t weights[kMost][kQuantBlock / 4][kPanelOutputs][4];
  alignas(64) float scales[kMost][kPanelOutputs];
  alignas(64) float minima[kMost][kPanelOutputs];
};

// Of a panel's block: of its weights, and of all.
template <Quants kKind>
constexpr std::size_t kQuantBytes = kPanelOutputs* kQuantBlock / (kKind == Quants::Q8 ? 1 : 2);
template <Quants kKind>
constexpr std::size_t kBlockBytes =
    kQuantBytes<kKind> + sizeof(std::uint16_t) * kPanelOutputs*(kKind == Quants::Q4_1 ? 2 : 1);

// Q8, Q4 and Q4_1, see tile_bytes: takes the block at `at` apart, and returns where the next
// begins.
template <Quants kKind>
STAGECRAFT_INLINE const std::byte* take_apart(const std::byte* at, std::size_t b, Blocks& blocks) {
  std::byte* const to = reinterpret_cast<std::byte*>(blocks.weights[b]);
  for (std::size_t i = 0; i < kQuantBytes<kKind>; i += sizeof(Ints)) {
    const Ints quants = load_ints(at + i);
    if constexpr (kKind == Quants::Q8) {
      const Ints weights = quants ^ (Ints)(Words{} + 0x80808080u);
      std::memcpy(to + i, &weights, sizeof weights);
    } else {
      const __m512i bias = _mm512_set1_epi8(kKind == Quants::Q4 ? 8 : 0);
      const Ints low = quants & 0x0f0f0f0f, high = (quants >> 4) & 0x0f0f0f0f;
      _mm512_store_si512(to + i, _mm512_sub_epi8((__m512i)low, bias));
      _mm512_store_si512(to + kQuantBytes<kKind> + i, _mm512_sub_epi8((__m512i)high, bias));
    }
  }
  at += kQuantBytes<kKind>;
  for (std::size_t v = 0; v < kVecs; ++v) {
    const auto* halves = reinterpret_cast<const std::uint16_t*>(at) + v * kLanes;
    store(&blocks.scales[b][v * kLanes], load_f16(halves));
    if constexpr (kKind == Quants::Q4_1) {
      store(&blocks.minima[b][v * kLanes], load_f16(halves + kPanelOutputs));
    }
  }
  return at + kBlockBytes<kKind> - kQuantBytes<kKind>;
}

// dots = 16 rows of a block times the weights of 16 outputs. A macro, because the numbers of the
// registers must be literal.
#define STAGECRAFT_DOTS(c, a, b, rows, row_stride, weights, dots) \
  do {                                                            \
    _tile_zero(c);                                                \
    _tile_loadd(a, rows, row_stride);                             \
    _tile_loadd(b, weights, 4 * kPanelOutputs);                   \
    _tile_dpbssd(c, a, b);                                        \
    _tile_stored(c, dots, kAmxRowBytes);                          \
  } while (false)

// acc[r] += dots[r] times both scales, and the minima times the sum of the row's block.
template <bool kMinima>
STAGECRAFT_INLINE void add_dots(const TileArgs& t, const Blocks& blocks, std::size_t i,
                                std::size_t output, std::size_t row, std::size_t b,
                                const std::int32_t (&dots)[kAmxRows][kAmxOutputs],
                                Vec (&acc)[kAmxRows]) {
  const Vec d = load(&blocks.scales[i][output]);
  STAGECRAFT_UNROLL
  for (std::size_t r = 0; r < kAmxRows; ++r) {
    const std::size_t at = (row + r) * t.block_stride + b;
    acc[r] = fma(to_float(load_ints(dots[r])), d * broadcast(t.scales[at]), acc[r]);
    if constexpr (kMinima) {
      const float sum = t.scales[at] * static_cast<float>(t.sums[at].all);
      acc[r] = fma(load(&blocks.minima[i][output]), broadcast(sum), acc[r]);
    }
  }
}

// sums += 16 rows from `row` on times 16 outputs from `output` on, for the n blocks that are taken
// apart; the first of them is block `first` of the rows. sums: [16][32].
template <bool kMinima>
STAGECRAFT_INLINE void add_blocks(const TileArgs& t, const Blocks& blocks, std::size_t row,
                                  std::size_t output, std::size_t first, std::size_t n,
                                  float* sums) {
  alignas(64) std::int32_t dots[2][kAmxRows][kAmxOutputs];
  const auto* a =
      static_cast<const std::int8_t*>(t.rows) + row * t.row_stride + first * kQuantBlock;
  Vec acc[kAmxRows];
  STAGECRAFT_UNROLL
  for (std::size_t r = 0; r < kAmxRows; ++r) acc[r] = load(sums + r * kPanelOutputs);
  // While the products of a block are added, those of the next are on their way.
  for (std::size_t i = 0; i <= n; i += 2) {
    if (i < n) {
      STAGECRAFT_DOTS(0, 4, 6, a + i * kQuantBlock, t.row_stride, blocks.weights[i][0][output],
                      dots[0]);
    }
    if (i > 0) add_dots<kMinima>(t, blocks, i - 1, output, row, first + i - 1, dots[1], acc);
    if (i + 1 < n) {
      STAGECRAFT_DOTS(1, 5, 7, a + (i + 1) * kQuantBlock, t.row_stride,
                      blocks.weights[i + 1][0][output], dots[1]);
    }
    if (i < n) add_dots<kMinima>(t, blocks, i, output, row, first + i, dots[0], acc);
    if (i + 1 == n) break;
  }
  STAGECRAFT_UNROLL
  for (std::size_t r = 0; r < kAmxRows; ++r) store(sums + r * kPanelOutputs, acc[r]);
}
#undef STAGECRAFT_DOTS

// A whole number of 16 rows.
template <Quants kKind>
void tile_amx_blocks(const TileArgs& t, std::size_t n) {
  TileShapes shapes;
  for (const int tile : {0, 1}) TileShapes::set(shapes, tile, kAmxRows, kAmxRowBytes);
  for (const int tile : {4, 5}) TileShapes::set(shapes, tile, kAmxRows, kQuantBlock);
  for (const int tile : {6, 7}) TileShapes::set(shapes, tile, kQuantBlock / 4, kAmxRowBytes);
  set_tiles(shapes);
  alignas(64) float sums[kAmxMostRows][kPanelOutputs];
  std::memset(sums, 0, n * sizeof sums[0]);
  Blocks blocks;
  const std::size_t n_blocks = t.inputs / kQuantBlock;
  const std::byte* at = t.panel;
  Ahead ahead{t.ahead, t.ahead_step * kQuantBlock};
  for (std::size_t b = 0; b < n_blocks; b += Blocks::kMost) {
    const std::size_t some = std::min(Blocks::kMost, n_blocks - b);
    for (std::size_t i = 0; i < some; ++i) at = take_apart<kKind>(at, i, blocks);
    finish_writes(&blocks);
    for (std::size_t row = 0; row < n; row += kAmxRows) {
      if (row / kAmxRows < some) Ahead::fetch(ahead);
      for (std::size_t output = 0; output < kPanelOutputs; output += kAmxOutputs) {
        add_blocks<kKind == Quants::Q4_1>(t, blocks, row, output, b, some, &sums[row][output]);
      }
    }
  }
  _tile_release();
  for (std::size_t r = 0; r < n; ++r) {
    for (std::size_t v = 0; v < kVecs; ++v) {
      float* const out = t.out + r * t.out_stride + v * kLanes;
      const Vec sum = load(&sums[r][v * kLanes]);
      store(out, t.add ? load(out) + sum : sum);
    }
  }
}

// Where there are enough rows that taking a panel apart pays, those that fill tiles; the others by
// kVectors, at most kBytes.rows at a time.
template <Quants kKind, Tile kVectors>
void tile_amx_bytes(const TileArgs& t, std::size_t n) {
  if (n <= kBytes.rows) return kVectors(t, n);
  constexpr std::size_t kEnough = 4 * kAmxRows;
  const std::size_t by_tiles = n < kEnough ? 0 : n / kAmxRows * kAmxRows;
  // All rows in one call go through a panel several times: the next one is fetched meanwhile.
  const bool alone = t.ahead_step == 0;
  const std::byte* const ahead =
      alone ? t.panel + kBlockBytes<kKind> * (t.inputs / kQuantBlock) : t.ahead;
  const std::size_t ahead_bytes =
      alone ? kBlockBytes<kKind> * (t.inputs / kQuantBlock) : t.ahead_step * t.inputs;
  const auto rows = [&](std::size_t first, std::size_t end) STAGECRAFT_INLINED {
    TileArgs some = t;
    some.rows = static_cast<const std::int8_t*>(t.rows) + first * t.row_stride;
    some.scales = t.scales + first * t.block_stride;
    some.sums = t.sums + first * t.block_stride;
    some.out = t.out + first * t.out_stride;
    some.ahead = ahead + ahead_bytes * first / n;
    some.ahead_step = ahead_bytes * (end - first) / n / t.inputs;
    return some;
  };
  if (by_tiles != 0) tile_amx_blocks<kKind>(rows(0, by_tiles), by_tiles);
  for (std::size_t r = by_tiles; r < n; r += kBytes.rows) {
    const std::size_t end = std::min<std::size_t>(n, r + kBytes.rows);
    kVectors(rows(r, end), end - r);
  }
}

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
