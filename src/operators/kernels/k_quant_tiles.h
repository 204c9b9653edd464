#pragma once

#include "operators/kernels/k_quant_panel.h"
#include "operators/kernels/matmul_tiles.h"

// Tiles of K-quants; k_quant_panel.h shows their panels. Products that share a scale are summed
// exactly, as integers. The product of d, an f16 with 11 bits, and a scale of at most 7 bits is
// exact, too.

namespace stagecraft::STAGECRAFT_ISA {
namespace {

// Weights of a block for kLanes outputs: those of four inputs, and those of four other inputs.
struct TwoFours {
  Ints first, second;
};

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

// Weights of the block at `at` for kLanes outputs from `output` on: those of the four inputs from
// 4 * group on, and those of the four inputs 16 later.
STAGECRAFT_INLINE TwoFours nibbles(const std::byte* at, int group, std::size_t output) {
  const Ints both = load_ints(at + 4 * (kPanelOutputs * group + output));
  return {both & 0x0f0f0f0f, (both >> 4) & 0x0f0f0f0f};
}

STAGECRAFT_INLINE TwoFours five_bits(const std::byte* at, int group, std::size_t output) {
  const auto [low, high] = nibbles(at, group, output);
  const Ints fifth = load_ints(at + kKNibbles + 4 * output);
  return {low | ((fifth << (4 - group)) & 0x10101010), high | ((fifth >> group) & 0x10101010)};
}

// Weights of Q6_K, whose blocks have a scale per half: four inputs of one half.
STAGECRAFT_INLINE Ints six_bits(const std::byte* at, std::size_t half, int group,
                                std::size_t output) {
  const auto [first, second] = nibbles(at, group, output);
  const Ints high = load_ints(at + kKNibbles + kKBits * half + 4 * output);
  return (half == 0 ? first : second) |
         ((group < 3 ? high << (4 - 2 * group) : high >> 2) & 0x30303030);
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

// Four 6-bit numbers for each of kLanes outputs.
struct FourNumbers {
  Ints number[4];
  STAGECRAFT_INLINE FourNumbers read(const std::byte* at) {
    const Ints one = load_u8(at), two = load_u8(at + kPanelOutputs),
               three = load_u8(at + 2 * kPanelOutputs);
    return {{one & 63, two & 63, three & 63, one >> 6 | two >> 6 << 2 | three >> 6 << 4}};
  }
};

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

template <int Rows, bool kFifthBit>
void tile_of_minima(const TileArgs& t) {
  constexpr std::size_t Vecs = kBytes.vecs_of(Rows);
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
        const Vec minimum = load(&numbers.minimum[b % 2][kLanes * v]);
        STAGECRAFT_UNROLL
        for (int r = 0; r < Rows; ++r) {
          const std::size_t i = r * t.block_stride + b;
          const float sum = t.scales[i] * static_cast<float>(t.sums[i].all);
          acc[r][v] = fma(minimum, broadcast(-sum), acc[r][v]);
        }
      }
    }
  });
}
template <int Rows>
void tile_q4_k(const TileArgs& t) {
  tile_of_minima<Rows, false>(t);
}
template <int Rows>
void tile_q5_k(const TileArgs& t) {
  tile_of_minima<Rows, true>(t);
}

template <int Rows>
void tile_q6_k(const TileArgs& t) {
  constexpr std::size_t Vecs = kBytes.vecs_of(Rows);
  constexpr std::size_t kBlockBytes = kKNibbles + 2 * kKBits;
  tile<Rows, Vecs>(t, [&](std::size_t first, Vec(&acc)[Rows][Vecs]) STAGECRAFT_INLINED {
    const std::size_t lane = first * kLanes;
    const std::byte* at = t.panel;
    const std::uint16_t* d = nullptr;
    for (std::size_t b = 0; b < t.inputs / kQuantBlock; ++b) {
      if (b % 8 == 0) {
        d = reinterpret_cast<const std::uint16_t*>(at) + lane;
        at += kKHalves;
      }
      const std::byte* scales = at + lane;
      at += 2 * kPanelOutputs;
      for (int half = 0; half < 2; ++half) {
        Ints dot[Rows][Vecs];
        const auto sum_of_half = [&](int r) STAGECRAFT_INLINED {
          const BlockSums& sums = t.sums[r * t.block_stride + b];
          return half == 0 ? sums.first_half : sums.all - sums.first_half;
        };
        begin_dots(32, sum_of_half, dot);
        STAGECRAFT_UNROLL
        for (int group = 0; group < 4; group += 2) {
          fetch_straight_on<Rows, kBlockBytes / 4>(t, at + kBlockBytes / 8 * (4 * half + group));
          TwoFours two[Vecs];
          STAGECRAFT_UNROLL
          for (std::size_t v = 0; v < Vecs; ++v) {
            const std::size_t output = lane + kLanes * v;
            two[v] = {six_bits(at, half, group, output), six_bits(at, half, group + 1, output)};
          }
          const std::size_t input = b * kQuantBlock + 16 * half + 4 * group;
          add_fours(t, input, input + 4, two, dot);
        }
        STAGECRAFT_UNROLL
        for (std::size_t v = 0; v < Vecs; ++v) {
          const Vec scale = load_i8(scales + kPanelOutputs * half + kLanes * v);
          add_scaled_dots(t, b, v, load_f16(d + kLanes * v) * scale, dot, acc);
        }
      }
      at += kBlockBytes;
    }
  });
}

// kNonlinear + 128
constexpr std::uint8_t kNonlinearBytes[16] = {1,   24,  45,  63,  79,  93,  106, 118,
                                              129, 141, 153, 166, 181, 197, 217, 241};

STAGECRAFT_INLINE TwoFours nonlinear(const std::byte* at, int group, std::size_t output) {
  const auto [low, high] = nibbles(at, group, output);
  return {look_up(kNonlinearBytes, low), look_up(kNonlinearBytes, high)};
}

template <int Rows>
void tile_iq4_xs(const TileArgs& t) {
  constexpr std::size_t Vecs = kBytes.vecs_of(Rows);
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
        for (std::size_t v = 0; v < Vecs; ++v) two[v] = nonlinear(at, group, lane + kLanes * v);
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
