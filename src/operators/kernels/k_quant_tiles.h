#pragma once

#include "operators/kernels/matmul_tiles.h"
#include "operators/kernels/unpacking.h"

// Tiles of a few rows, for K-quants; k_quant_panel.h shows their panels. Products that share a
// scale are summed exactly, as integers. The product of d, an f16 with 11 bits, and a scale of at
// most 7 bits is exact, too.

namespace stagecraft::STAGECRAFT_ISA {
namespace {

// dot[r][v] += two[v].first times the four bytes of row r from `input` on, and two[v].second times
// the four from `other` on. kWholeBytes: the weights are bytes + 128, as dot_q8 needs them.
template <bool kWholeBytes = false, int Rows, std::size_t Vecs>
STAGECRAFT_INLINE void add_fours(const TileArgs& t, std::size_t input, std::size_t other,
                                 const TwoFours (&two)[Vecs], Ints (&dot)[Rows][Vecs]) {
  fetch<Rows>(t, input);
  fetch<Rows>(t, other);
  STAGECRAFT_UNROLL
  for (int r = 0; r < Rows; ++r) {
    const auto* row = static_cast<const std::int8_t*>(t.rows) + r * t.row_stride;
    const Ints x = broadcast(load_as<std::int32_t>(row + input));
    const Ints y = broadcast(load_as<std::int32_t>(row + other));
    STAGECRAFT_UNROLL
    for (std::size_t v = 0; v < Vecs; ++v) {
      const auto [w, next_w] = two[v];
      dot[r][v] = kWholeBytes ? dot_q8(dot_q8(dot[r][v], w, x), next_w, y)
                              : dot_two_small(dot[r][v], w, x, next_w, y);
    }
  }
}

// acc[r] += dot[r] times the scale of the weights and the scale of block b of the row.
template <int Rows, std::size_t Vecs>
STAGECRAFT_INLINE void add_scaled_dots(const TileArgs& t, std::size_t b, std::size_t v, Vec scale,
                                       const Ints (&dot)[Rows][Vecs], Vec (&acc)[Rows][Vecs]) {
  STAGECRAFT_UNROLL
  for (int r = 0; r < Rows; ++r) {
    const Vec both = scale * broadcast(t.scales[r * t.block_stride + b]);
    acc[r][v] = fma(to_float(dot[r][v]), both, acc[r][v]);
  }
}

// acc[r] += the minimum times sums[r][b].
template <int Rows, std::size_t Vecs, std::size_t kMost>
STAGECRAFT_INLINE void add_minima(Vec minimum, const float (&sums)[Rows][kMost], std::size_t b,
                                  std::size_t v, Vec (&acc)[Rows][Vecs]) {
  STAGECRAFT_UNROLL
  for (int r = 0; r < Rows; ++r) acc[r][v] = fma(minimum, broadcast(sums[r][b]), acc[r][v]);
}

// The scales and minima of a block, for Vecs vectors of outputs.
template <std::size_t Vecs>
struct ScalesOf {
  alignas(64) float scales[Vecs * kLanes], minima[Vecs * kLanes];
};

// How many panels are multiplied at a time, as an argument that tells it to the compiler.
template <std::size_t n>
struct Panels {};

template <int Rows, WeightLayout kLayout>
void tile_k_quant(const TileArgs& t) {
  using Unpacking = Unpacking<kLayout>;
  constexpr std::size_t Vecs = kByteTile.vecs_of(Rows);
  const TileArgs fetching =
      fetching_for_parts<Rows, Vecs>(t, kPanelBytes<Unpacking> * (t.inputs / kKBlock));
  // Multiplies 256 inputs of one panel or of two. Two take turns after each 32 inputs or fewer: 256
  // inputs of one panel would be read too long for a second stream.
  const auto add_block = [&]<std::size_t kPanels>(
                             Panels<kPanels>, std::size_t index, const std::byte* first_head,
                             std::size_t first_vec, Vec(*acc)[Rows][Vecs]) STAGECRAFT_INLINED {
    const std::size_t lane = first_vec * kLanes, first = index * kKBlock;
    const auto of_panel = [&](std::size_t p, const std::byte* at)
                              STAGECRAFT_INLINED { return p == 0 ? at : at + t.second; };
    ScalesOf<Vecs> stored[kPanels][Unpacking::kScaleBlocks];
    RowSums<Unpacking> row_sums[Rows];
    if constexpr (Unpacking::kMinima) {
      sum_blocks<Unpacking>(t, Rows, first, kBlocks<Unpacking>, row_sums);
    }
    const auto get_scales = [&](std::size_t, const std::byte* at) STAGECRAFT_INLINED {
      STAGECRAFT_UNROLL
      for (std::size_t p = 0; p < kPanels; ++p) {
        STAGECRAFT_UNROLL
        for (std::size_t v = 0; v < Vecs; ++v) {
          const auto put = [&](std::size_t i, Vec scale, Vec minimum) STAGECRAFT_INLINED {
            store(&stored[p][i].scales[kLanes * v], scale);
            if constexpr (Unpacking::kMinima) store(&stored[p][i].minima[kLanes * v], minimum);
          };
          read_scales<Unpacking>(of_panel(p, first_head), of_panel(p, at), lane + kLanes * v, put);
        }
      }
    };
    const auto multiply = [&](std::size_t p, std::size_t b, const std::byte* weights,
                              int one) STAGECRAFT_INLINED {
      const std::size_t input = first + b * Unpacking::kInputs, block = input / kQuantBlock;
      const auto sum = [&](int r) STAGECRAFT_INLINED {
        return sum_of<Unpacking>(t.sums[r * t.block_stride + block], one * Unpacking::kInputs);
      };
      Ints dot[Rows][Vecs];
      begin_dots(Unpacking::kBias, sum, dot);
      STAGECRAFT_UNROLL
      for (int i = 0; i < kTwos<Unpacking>; ++i) {
        constexpr std::size_t kBytes = kTwoBytes<Unpacking>;
        prefetch_ahead<Rows, kBytes, false, 2048>(fetching,
                                                  weights + kBytes * (kTwos<Unpacking> * one + i));
        TwoFours two[Vecs];
        STAGECRAFT_UNROLL
        for (std::size_t v = 0; v < Vecs; ++v) {
          two[v] = Unpacking::two(weights, one, i, lane + kLanes * v);
        }
        const std::size_t from = input + first_of<Unpacking>(i);
        add_fours<Unpacking::kWholeBytes>(fetching, from, from + Unpacking::kApart, two, dot);
      }
      const ScalesOf<Vecs>& of_block = stored[p][b % Unpacking::kScaleBlocks];
      STAGECRAFT_UNROLL
      for (std::size_t v = 0; v < Vecs; ++v) {
        add_scaled_dots(t, block, v, load(&of_block.scales[kLanes * v]), dot, acc[p]);
        if constexpr (Unpacking::kMinima) {
          add_minima(load(&of_block.minima[kLanes * v]), row_sums, b, v, acc[p]);
        }
      }
    };
    const auto multiply_each = [&](std::size_t b, const std::byte* at, int one) STAGECRAFT_INLINED {
      STAGECRAFT_UNROLL
      for (std::size_t p = 0; p < kPanels; ++p) multiply(p, b, of_panel(p, at), one);
    };
    for_blocks<Unpacking>(first_head + Unpacking::kHeadBytes, kBlocks<Unpacking>, get_scales,
                          multiply_each);
  };
  const std::size_t blocks = t.inputs / kKBlock;
  if constexpr (Rows == 1 && kTwoPanels) {
    const auto add = [&](auto... args) STAGECRAFT_INLINED { add_block(Panels<2>{}, args...); };
    if (t.second != 0) return two_panels(t, blocks, kPanelBytes<Unpacking>, add);
  }
  tile<Rows, Vecs>(t, [&](std::size_t first, Vec(&acc)[Rows][Vecs]) STAGECRAFT_INLINED {
    const std::byte* at = t.panel;
    for (std::size_t b = 0; b < blocks; ++b, at += kPanelBytes<Unpacking>) {
      add_block(Panels<1>{}, b, at, first, &acc);
    }
  });
}

}  // namespace
}  // namespace stagecraft::STAGECRAFT_ISA
