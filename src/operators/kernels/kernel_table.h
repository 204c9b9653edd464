#pragma once

// One table of kernels. CMake compiles this once per line of instruction_sets.txt, with
// STAGECRAFT_ISA set to the name of the instruction set.
#if defined(__AMX_BF16__)
#include "operators/kernels/amx_k_quants.h"
#include "operators/kernels/amx_tiles.h"
#endif
#include "operators/kernels/dot_examples.h"
#include "operators/kernels/k_quant_tiles.h"
#include "operators/kernels/matmul_tiles.h"
#include "operators/kernels/peak_loops.h"
#include "operators/kernels/row_kernels.h"
#include "operators/kernels/unpacked_blocks.h"

namespace stagecraft::STAGECRAFT_ISA {

#define STAGECRAFT_STRING_(x) #x
#define STAGECRAFT_STRING(x) STAGECRAFT_STRING_(x)
// A Tile that calls tile<n_rows> or tile<n_rows, layout>, for 1 to `most` rows.
#define STAGECRAFT_TILES(most, tile, ...)                                                        \
  by_rows<                                                                                       \
      STAGECRAFT_TILE(1, most, tile, __VA_ARGS__), STAGECRAFT_TILE(2, most, tile, __VA_ARGS__),  \
      STAGECRAFT_TILE(3, most, tile, __VA_ARGS__), STAGECRAFT_TILE(4, most, tile, __VA_ARGS__),  \
      STAGECRAFT_TILE(5, most, tile, __VA_ARGS__), STAGECRAFT_TILE(6, most, tile, __VA_ARGS__),  \
      STAGECRAFT_TILE(7, most, tile, __VA_ARGS__), STAGECRAFT_TILE(8, most, tile, __VA_ARGS__),  \
      STAGECRAFT_TILE(9, most, tile, __VA_ARGS__), STAGECRAFT_TILE(10, most, tile, __VA_ARGS__), \
      STAGECRAFT_TILE(11, most, tile, __VA_ARGS__), STAGECRAFT_TILE(12, most, tile, __VA_ARGS__)>
#define STAGECRAFT_TILE(rows, most, tile, ...) \
  tile<(rows <= most ? rows : 1) __VA_OPT__(, ) __VA_ARGS__>
// The MatmulKernel of a layout whose rows are bytes. STAGECRAFT_UNPACKED: the same for a layout
// whose panel is unpacked once for many rows.
#define STAGECRAFT_BYTES(layout, tile)                                          \
  MatmulKernel {                                                                \
    kTileOfBytes<WeightLayout::layout,                                          \
                 STAGECRAFT_TILES(kByteTile.rows, tile, WeightLayout::layout)>, \
        kBytesMost, ActivationType::Q8                                          \
  }
#define STAGECRAFT_UNPACKED(layout, tile)                                          \
  MatmulKernel {                                                                   \
    kTileOfUnpacked<WeightLayout::layout,                                          \
                    STAGECRAFT_TILES(kByteTile.rows, tile, WeightLayout::layout)>, \
        kUnpackedMost, ActivationType::Q8                                          \
  }
#if defined(__AMX_BF16__)
#define STAGECRAFT_K_QUANT(layout)                                                               \
  MatmulKernel {                                                                                 \
    tile_amx_k<WeightLayout::layout, STAGECRAFT_TILES(kFewK, tile_few_k, WeightLayout::layout)>, \
        kAmxMostRows, ActivationType::Q8_K                                                       \
  }
#else
#define STAGECRAFT_K_QUANT(layout) STAGECRAFT_UNPACKED(layout, tile_k_quant)
#endif

namespace {

// One function for the kernels of 1, 2, 3 ... rows.
template <auto... kTiles>
void by_rows(const TileArgs& t, std::size_t n_rows) {
  static constexpr void (*kTile[])(const TileArgs&) = {kTiles...};
  kTile[n_rows - 1](t);
}

// How weights in bf16 are multiplied with activations that are rounded to bf16.
#if defined(__AMX_BF16__)
constexpr ActivationType kRoundedRows = ActivationType::BF16;
constexpr std::size_t kRoundedMost = kAmxMostRows, kMinRowsPerThread = 96;
constexpr Tile kRoundedTile = tile_amx_bf16;
constexpr auto kPeakBf16 = peak_amx_bf16;
constexpr auto kPeakQ8K = peak_amx_bf16;  // twice as many products of bytes, but two per weight
constexpr auto kToQ8K = to_q8_k;
template <WeightLayout kLayout, Tile kFew>
constexpr Tile kTileOfBytes = kAmxTile<kLayout, tile_in_parts<kFew>>;
template <WeightLayout kLayout, Tile kFew>
constexpr Tile kTileOfUnpacked = kAmxTile<kLayout, kUnpackedTile<kLayout, kFew>>;
constexpr std::size_t kBytesMost = kAmxMostRows, kUnpackedMost = kAmxMostRows;
#elif defined(__AVX512BF16__)
constexpr ActivationType kRoundedRows = ActivationType::BF16;
constexpr std::size_t kRoundedMost = kFloatTile.rows, kMinRowsPerThread = 12;
constexpr Tile kRoundedTile = STAGECRAFT_TILES(kFloatTile.rows, tile_rounded_bf16);
constexpr auto kPeakBf16 = peak_bf16;
#else
constexpr ActivationType kRoundedRows = ActivationType::F32;
constexpr std::size_t kRoundedMost = kHalfTile.rows, kMinRowsPerThread = 12;
constexpr Tile kRoundedTile = STAGECRAFT_TILES(kHalfTile.rows, tile_bf16);
constexpr auto kPeakBf16 = peak_f32;
#endif
#if !defined(__AMX_BF16__)
constexpr decltype(Kernels::to_q8_k) kToQ8K = nullptr;
constexpr auto kPeakQ8K = peak_bytes;
template <WeightLayout, Tile kFew>
constexpr Tile kTileOfBytes = kFew;
template <WeightLayout kLayout, Tile kFew>
constexpr Tile kTileOfUnpacked = kUnpackedTile<kLayout, kFew>;
constexpr std::size_t kBytesMost = kByteTile.rows, kUnpackedMost = kUnpackedRows;
#endif

}  // namespace

extern const Kernels table;

// std::array{} has the size of its list: a list that lacks a function does not compile.
const Kernels table = {
    .name = STAGECRAFT_STRING(STAGECRAFT_ISA),
    .matmuls =
        std::array{
            MatmulKernel{STAGECRAFT_TILES(kFloatTile.rows, tile_f32), kFloatTile.rows,
                         ActivationType::F32},
            MatmulKernel{STAGECRAFT_TILES(kHalfTile.rows, tile_f16), kHalfTile.rows,
                         ActivationType::F32},
            MatmulKernel{STAGECRAFT_TILES(kHalfTile.rows, tile_bf16), kHalfTile.rows,
                         ActivationType::F32},
            MatmulKernel{kRoundedTile, kRoundedMost, kRoundedRows},
            STAGECRAFT_BYTES(Q8_0, tile_blocks),
            STAGECRAFT_BYTES(Q4_0, tile_blocks),
            STAGECRAFT_BYTES(Q4_1, tile_blocks),
            STAGECRAFT_UNPACKED(Q5_0, tile_blocks),
            STAGECRAFT_UNPACKED(Q5_1, tile_blocks),
            STAGECRAFT_UNPACKED(IQ4_NL, tile_blocks),
            STAGECRAFT_UNPACKED(MXFP4, tile_blocks),
            STAGECRAFT_K_QUANT(Q2_K),
            STAGECRAFT_K_QUANT(Q3_K),
            STAGECRAFT_K_QUANT(Q4_K),
            STAGECRAFT_K_QUANT(Q5_K),
            STAGECRAFT_K_QUANT(Q6_K),
            STAGECRAFT_K_QUANT(IQ4_XS),
            MatmulKernel{STAGECRAFT_TILES(kHalfTile.rows, tile_q8_by_input), kHalfTile.rows,
                         ActivationType::F32},
        },
    .min_rows_per_thread = kMinRowsPerThread,
    .two_panels = kTwoPanels,
    .to_bf16 = to_bf16,
    .to_f16 = to_f16,
    .to_q8 = to_q8,
    .to_q8_k = kToQ8K,
    .rms_norm = rms_norm,
    .layer_norm = layer_norm,
    .l2_norm = l2_norm,
    .delta_rule = delta_rule,
    .activate = std::array{activate_rows<silu>, activate_rows<gelu_tanh>, activate_rows<gelu>,
                           activate_rows<relu>, activate_rows<sigmoid>, activate_rows<identity>},
    .clamped_swiglu = clamped_swiglu,
    .soft_cap = soft_cap,
    .clip = clip,
    .alibi = alibi,
    .rope = {rope, neighbour_rope},
    .add = add,
    .add_scaled = add_scaled,
    .add_product = add_product,
    .softmax_block = softmax_block,
    .scale = scale,
    .sum = sum_of,
    .peak = {peak_f32, kPeakBf16, peak_bytes, kPeakQ8K},
    .dot = {dot_of_numbers, dot_of_vectors<1>, dot_of_vectors<4>},
};

}  // namespace stagecraft::STAGECRAFT_ISA
