#pragma once

// One table of kernels. CMake compiles this once per line of instruction_sets.txt, with
// STAGECRAFT_ISA set to the name of the instruction set.
#if defined(__AMX_BF16__)
#include "operators/kernels/amx_tiles.h"
#endif
#include "operators/kernels/dot_examples.h"
#include "operators/kernels/k_quant_tiles.h"
#include "operators/kernels/matmul_tiles.h"
#include "operators/kernels/peak_loops.h"
#include "operators/kernels/row_kernels.h"

namespace stagecraft::STAGECRAFT_ISA {

#define STAGECRAFT_STRING_(x) #x
#define STAGECRAFT_STRING(x) STAGECRAFT_STRING_(x)
// A Tile that calls tile<n_rows>, for 1 to `most` rows.
#define STAGECRAFT_TILES(tile, most)                                                          \
  by_rows<tile<1>, tile<2 <= most ? 2 : 1>, tile<3 <= most ? 3 : 1>, tile<4 <= most ? 4 : 1>, \
          tile<5 <= most ? 5 : 1>, tile<6 <= most ? 6 : 1>, tile<7 <= most ? 7 : 1>,          \
          tile<8 <= most ? 8 : 1>, tile<9 <= most ? 9 : 1>, tile<10 <= most ? 10 : 1>,        \
          tile<11 <= most ? 11 : 1>, tile<12 <= most ? 12 : 1>>

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
constexpr std::size_t kRoundedMost = kAmxMostRows, kRowsPerShare = kAmxMostRows;
constexpr Tile kRoundedTile = tile_amx_bf16;
constexpr auto kPeakBf16 = peak_amx_bf16;
template <Quants kKind, auto kRest>
constexpr Tile kTileOfBytes = tile_amx_bytes<kKind, kRest>;
constexpr std::size_t kBytesMost = kAmxMostRows;
#elif defined(__AVX512BF16__)
constexpr ActivationType kRoundedRows = ActivationType::BF16;
constexpr std::size_t kRoundedMost = kFloats.rows, kRowsPerShare = 12;
constexpr Tile kRoundedTile = STAGECRAFT_TILES(tile_rounded_bf16, kFloats.rows);
constexpr auto kPeakBf16 = peak_bf16;
#else
constexpr ActivationType kRoundedRows = ActivationType::F32;
constexpr std::size_t kRoundedMost = kHalves.rows, kRowsPerShare = 12;
constexpr Tile kRoundedTile = STAGECRAFT_TILES(tile_bf16, kHalves.rows);
constexpr auto kPeakBf16 = peak_f32;
#endif
#if !defined(__AMX_BF16__)
template <Quants kKind, auto kRest>
constexpr Tile kTileOfBytes = kRest;
constexpr std::size_t kBytesMost = kBytes.rows;
#endif

}  // namespace

extern const Kernels table;

const Kernels table = {
    .name = STAGECRAFT_STRING(STAGECRAFT_ISA),
    .tile = {STAGECRAFT_TILES(tile_f32, kFloats.rows), STAGECRAFT_TILES(tile_f16, kHalves.rows),
             STAGECRAFT_TILES(tile_bf16, kHalves.rows), kRoundedTile,
             kTileOfBytes<Quants::Q8, STAGECRAFT_TILES(tile_q8, kBytes.rows)>,
             kTileOfBytes<Quants::Q4, STAGECRAFT_TILES(tile_q4, kBytes.rows)>,
             kTileOfBytes<Quants::Q4_1, STAGECRAFT_TILES(tile_q4_1, kBytes.rows)>,
             kTileOfBytes<Quants::Q4_K, STAGECRAFT_TILES(tile_q4_k, kBytes.rows)>,
             kTileOfBytes<Quants::Q5_K, STAGECRAFT_TILES(tile_q5_k, kBytes.rows)>,
             kTileOfBytes<Quants::Q6_K, STAGECRAFT_TILES(tile_q6_k, kBytes.rows)>,
             kTileOfBytes<Quants::IQ4_XS, STAGECRAFT_TILES(tile_iq4_xs, kBytes.rows)>,
             STAGECRAFT_TILES(tile_q8_by_input, kHalves.rows)},
    .max_rows = {kFloats.rows, kHalves.rows, kHalves.rows, kRoundedMost, kBytesMost, kBytesMost,
                 kBytesMost, kBytesMost, kBytesMost, kBytesMost, kBytesMost, kHalves.rows},
    .rows_per_share = kRowsPerShare,
    .activation_type = {ActivationType::F32, ActivationType::F32, ActivationType::F32, kRoundedRows,
                        ActivationType::Q8, ActivationType::Q8, ActivationType::Q8,
                        ActivationType::Q8, ActivationType::Q8, ActivationType::Q8,
                        ActivationType::Q8, ActivationType::F32},
    .to_bf16 = to_bf16,
    .to_f16 = to_f16,
    .to_q8 = to_q8,
    .rms_norm = rms_norm,
    .layer_norm = layer_norm,
    .l2_norm = l2_norm,
    .delta_rule = delta_rule,
    .activate = {activate_rows<silu>, activate_rows<gelu_tanh>, activate_rows<gelu>,
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
    .peak = {peak_f32, kPeakBf16, peak_bytes},
    .dot = {dot_of_numbers, dot_of_vectors<1>, dot_of_vectors<4>},
};

}  // namespace stagecraft::STAGECRAFT_ISA
