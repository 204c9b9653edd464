#pragma once

#include "operators/kernels/block_weights.h"
#include "operators/kernels/matmul_tiles.h"

// Tiles of K-quants; k_quant_panel.h shows their panels. Products that share a scale are summed
// exactly, as integers. The product of d, an f16 with 11 bits, and a scale of at most 7 bits is
// exact, too.

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

// acc[r] -= the minimum times the scale of block b of the row times sum_of(r), the sum of the row's
// bytes that share this minimum.
template <int Rows, std::size_t Vecs, class SumOf>
STAGECRAFT_INLINE void add_minima(const TileArgs& t, std::size_t b, std::size_t v, Vec minimum,
                                  SumOf sum_of, Vec (&acc)[Rows][Vecs]) {
  STAGECRAFT_UNROLL
  for (int r = 0; r < Rows; ++r) {
    const float sum = t.scales[r * t.block_stride + b] * static_cast<float>(sum_of(r));
    acc[r][v] = fma(minimum, broadcast(-sum), acc[r][v]);
  }
}

// The scales and the minima of two blocks of Q4_K or Q5_K, for the outputs of Vecs vectors.
template <std::size_t Vecs>
struct ScalesAndMinima {
  alignas(64) float scale[2][Vecs * kLanes], minimum[2][Vecs * kLanes];

  // d_at: [32] d and [32] dmin; sixes: the 6-bit numbers. Both point to the first of these outputs.
  STAGECRAFT_INLINE void read(const std::byte* d_at, const std::byte* sixes, ScalesAndMinima& out) {
    STAGECRAFT_UNROLL
    for (std::size_t v = 0; v < Vecs; ++v) {
      const auto* halves = reinterpret_cast<const std::uint16_t*>(d_at) + kLanes * v;
      const Vec d = load_f16(halves), dmin = load_f16(halves + kPanelOutputs);
      const auto [number] = FourNumbers::read(sixes + kLanes * v);
      for (std::size_t i = 0; i < 2; ++i) {
        store(&out.scale[i][kLanes * v], d * to_float(number[2 * i]));
        store(&out.minimum[i][kLanes * v], dmin * to_float(number[2 * i + 1]));
      }
    }
  }
};

// Q4_K and Q5_K
template <int Rows, WeightLayout kLayout>
void tile_of_minima(const TileArgs& t) {
  constexpr std::size_t Vecs = kByteTile.vecs_of(Rows);
  constexpr bool kFifthBit = kLayout == WeightLayout::Q5_K;
  constexpr std::size_t kBlockBytes = kKNibbles + (kFifthBit ? kKBits : 0);
  tile<Rows, Vecs>(t, [&](std::size_t first, Vec(&acc)[Rows][Vecs]) STAGECRAFT_INLINED {
    const std::size_t lane = first * kLanes;
    const std::byte *at = t.panel, *d = nullptr;
    ScalesAndMinima<Vecs> numbers;
    for (std::size_t b = 0; b < t.inputs / kQuantBlock; ++b) {
      if (b % 8 == 0) {
        d = at + 2 * lane;
        at += 2 * kKHalves;
      }
      if (b % 2 == 0) {
        ScalesAndMinima<Vecs>::read(d, at + lane, numbers);
        at += kKSixes;
      }
      Ints dot[Rows][Vecs] = {};
      STAGECRAFT_UNROLL
      for (int group = 0; group < 4; ++group) {
        fetch_straight_on<Rows, kBlockBytes / 4>(t, at + kBlockBytes / 4 * group);
        TwoFours two[Vecs];
        STAGECRAFT_UNROLL
        for (std::size_t v = 0; v < Vecs; ++v) {
          const std::size_t output = lane + kLanes * v;
          two[v] = kFifthBit ? five_bits(at, group, output) : nibbles(at, group, output);
        }
        const std::size_t input = b * kQuantBlock + 4 * group;
        add_fours(t, input, input + 16, two, dot);
      }
      at += kBlockBytes;
      STAGECRAFT_UNROLL
      for (std::size_t v = 0; v < Vecs; ++v) {
        add_scaled_dots(t, b, v, load(&numbers.scale[b % 2][kLanes * v]), dot, acc);
        const auto sum_of_block = [&](int r) STAGECRAFT_INLINED {
          return t.sums[r * t.block_stride + b].all;
        };
        add_minima(t, b, v, load(&numbers.minimum[b % 2][kLanes * v]), sum_of_block, acc);
      }
    }
  });
}
// ---- types with a scale per 16 inputs -----------------------------------------------------------

// The scales of one or two blocks, for the outputs of Vecs vectors.
//   d     [32] d, and in Q2_K [32] dmin; at: the stored scales. Both point to the first of these
//         outputs.
//   half  of a block, or 2 + half for the second block
template <WeightLayout kLayout, std::size_t Vecs>
struct ScalesOfHalves;

template <std::size_t Vecs>
struct ScalesOfHalves<WeightLayout::Q2_K, Vecs> {
  static constexpr std::size_t kBlocks = 1, kBytes = 2 * kPanelOutputs;
  const std::uint16_t* d = nullptr;
  const std::byte* at = nullptr;

  STAGECRAFT_INLINE void read(const std::uint16_t* d, const std::byte* at, ScalesOfHalves& out) {
    out = {d, at};
  }
  STAGECRAFT_INLINE Vec scale(const ScalesOfHalves& s, std::size_t half, std::size_t v) {
    const Ints both = load_u8(s.at + kPanelOutputs * half + kLanes * v);
    return load_f16(s.d + kLanes * v) * to_float(both & 15);
  }
  STAGECRAFT_INLINE Vec minimum(const ScalesOfHalves& s, std::size_t half, std::size_t v) {
    const Ints both = load_u8(s.at + kPanelOutputs * half + kLanes * v);
    return load_f16(s.d + kPanelOutputs + kLanes * v) * to_float(both >> 4);
  }
};

template <std::size_t Vecs>
struct ScalesOfHalves<WeightLayout::Q3_K, Vecs> {
  static constexpr std::size_t kBlocks = 2, kBytes = kKSixes;
  alignas(64) float numbers[4][Vecs * kLanes];

  STAGECRAFT_INLINE void read(const std::uint16_t* d, const std::byte* at, ScalesOfHalves& out) {
    STAGECRAFT_UNROLL
    for (std::size_t v = 0; v < Vecs; ++v) {
      const auto [number] = FourNumbers::read(at + kLanes * v);
      for (std::size_t i = 0; i < 4; ++i) {
        store(&out.numbers[i][kLanes * v], load_f16(d + kLanes * v) * to_float(number[i] - 32));
      }
    }
  }
  STAGECRAFT_INLINE Vec scale(const ScalesOfHalves& s, std::size_t half, std::size_t v) {
    return load(&s.numbers[half][kLanes * v]);
  }
};

template <std::size_t Vecs>
struct ScalesOfHalves<WeightLayout::Q6_K, Vecs> {
  static constexpr std::size_t kBlocks = 1, kBytes = 2 * kPanelOutputs;
  const std::uint16_t* d = nullptr;
  const std::byte* at = nullptr;

  STAGECRAFT_INLINE void read(const std::uint16_t* d, const std::byte* at, ScalesOfHalves& out) {
    out = {d, at};
  }
  STAGECRAFT_INLINE Vec scale(const ScalesOfHalves& s, std::size_t half, std::size_t v) {
    return load_f16(s.d + kLanes * v) * load_i8(s.at + kPanelOutputs * half + kLanes * v);
  }
};

// Bytes of d and dmin per 256 inputs, and of the weights of a block; an unpacked weight is a weight
// + kBias.
template <WeightLayout kLayout>
struct WeightsOfHalves {
  static constexpr bool kMinima = kLayout == WeightLayout::Q2_K;
  static constexpr std::size_t kHeadBytes = kMinima ? 2 * kKHalves : kKHalves;
  static constexpr std::size_t kBytes = kLayout == WeightLayout::Q2_K   ? 2 * kKBits
                                        : kLayout == WeightLayout::Q3_K ? 3 * kKBits
                                                                        : kKNibbles + 2 * kKBits;
  static constexpr std::int32_t kBias = kLayout == WeightLayout::Q2_K   ? 0
                                        : kLayout == WeightLayout::Q3_K ? 4
                                                                        : 32;
  STAGECRAFT_INLINE Ints four(const std::byte* at, int half, int group, std::size_t output) {
    if constexpr (kLayout == WeightLayout::Q2_K) return two_bits(at, half, group, output);
    if constexpr (kLayout == WeightLayout::Q3_K) return three_bits(at, half, group, output);
    return six_bits(at, half, group, output);
  }
};

template <int Rows, WeightLayout kLayout>
void tile_of_halves(const TileArgs& t) {
  constexpr std::size_t Vecs = kByteTile.vecs_of(Rows);
  using Weights = WeightsOfHalves<kLayout>;
  using Scales = ScalesOfHalves<kLayout, Vecs>;
  tile<Rows, Vecs>(t, [&](std::size_t first, Vec(&acc)[Rows][Vecs]) STAGECRAFT_INLINED {
    const std::size_t lane = first * kLanes;
    const std::byte* at = t.panel;
    const std::uint16_t* d = nullptr;
    Scales scales;
    for (std::size_t b = 0; b < t.inputs / kQuantBlock; ++b) {
      if (b % 8 == 0) {
        d = reinterpret_cast<const std::uint16_t*>(at) + lane;
        at += Weights::kHeadBytes;
      }
      if (b % Scales::kBlocks == 0) {
        Scales::read(d, at + lane, scales);
        at += Scales::kBytes;
      }
      for (int half = 0; half < 2; ++half) {
        Ints dot[Rows][Vecs];
        const auto sum_of_half = [&](int r) STAGECRAFT_INLINED {
          const BlockSums& sums = t.sums[r * t.block_stride + b];
          return half == 0 ? sums.first_half : sums.all - sums.first_half;
        };
        begin_dots(Weights::kBias, sum_of_half, dot);
        STAGECRAFT_UNROLL
        for (int group = 0; group < 4; group += 2) {
          constexpr std::size_t kQuarter = Weights::kBytes / 4;
          fetch_straight_on<Rows, kQuarter>(t, at + kQuarter * (2 * half + group / 2));
          TwoFours two[Vecs];
          STAGECRAFT_UNROLL
          for (std::size_t v = 0; v < Vecs; ++v) {
            const std::size_t output = lane + kLanes * v;
            two[v] = {Weights::four(at, half, group, output),
                      Weights::four(at, half, group + 1, output)};
          }
          const std::size_t input = b * kQuantBlock + 16 * half + 4 * group;
          add_fours(t, input, input + 4, two, dot);
        }
        const std::size_t of_scales = 2 * (b % Scales::kBlocks) + half;
        STAGECRAFT_UNROLL
        for (std::size_t v = 0; v < Vecs; ++v) {
          add_scaled_dots(t, b, v, Scales::scale(scales, of_scales, v), dot, acc);
          if constexpr (Weights::kMinima) {
            const Vec minimum = Scales::minimum(scales, of_scales, v);
            add_minima(t, b, v, minimum, sum_of_half, acc);
          }
        }
      }
      at += Weights::kBytes;
    }
  });
}

template <int Rows, WeightLayout>
void tile_iq4_xs(const TileArgs& t) {
  constexpr std::size_t Vecs = kByteTile.vecs_of(Rows);
  tile<Rows, Vecs>(t, [&](std::size_t first, Vec(&acc)[Rows][Vecs]) STAGECRAFT_INLINED {
    const std::size_t lane = first * kLanes;
    const std::byte* at = t.panel;
    const std::uint16_t* d = nullptr;
    alignas(64) float scales[4][Vecs * kLanes];
    for (std::size_t b = 0; b < t.inputs / kQuantBlock; ++b) {
      if (b % 8 == 0) {
        d = reinterpret_cast<const std::uint16_t*>(at) + lane;
        at += kKHalves;
      }
      if (b % 4 == 0) {
        STAGECRAFT_UNROLL
        for (std::size_t v = 0; v < Vecs; ++v) {
          const auto [number] = FourNumbers::read(at + lane + kLanes * v);
          for (std::size_t i = 0; i < 4; ++i) {
            store(&scales[i][kLanes * v], load_f16(d + kLanes * v) * to_float(number[i] - 32));
          }
        }
        at += kKSixes;
      }
      Ints dot[Rows][Vecs];
      const auto sum_of_block = [&](int r) STAGECRAFT_INLINED {
        return t.sums[r * t.block_stride + b].all;
      };
      begin_dots(kByteBias, sum_of_block, dot);
      STAGECRAFT_UNROLL
      for (int group = 0; group < 4; ++group) {
        fetch_straight_on<Rows, kKNibbles / 4>(t, at + kKNibbles / 4 * group);
        TwoFours two[Vecs];
        STAGECRAFT_UNROLL
        for (std::size_t v = 0; v < Vecs; ++v) {
          two[v] = looked_up(kNonlinearBytes, at, group, lane + kLanes * v);
        }
        const std::size_t input = b * kQuantBlock + 4 * group;
        add_fours<true>(t, input, input + 16, two, dot);
      }
      at += kKNibbles;
      STAGECRAFT_UNROLL
      for (std::size_t v = 0; v < Vecs; ++v) {
        add_scaled_dots(t, b, v, load(&scales[b % 4][kLanes * v]), dot, acc);
      }
    }
  });
}

}  // namespace
}  // namespace stagecraft::STAGECRAFT_ISA
