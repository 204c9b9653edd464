#pragma once

#include "operators/kernels/kernels.h"
#include "operators/kernels/simd.h"

// The kernels that everything is made of: one panel of weights times a few rows of activations.
//
//                 32 outputs
//            +------------------+
//            |  panel, k = 0    |   one row of it fills kVecs vectors
//            |         k = 1    |
//   a[r][k]  |         ...      |   acc[r] += broadcast(a[r][k]) * panel[k]
//            +------------------+
//
// Rows x kVecs sums stay in registers from the first k to the last; nothing is ever added across
// the lanes of a vector. Each output is summed over k in the same order however many rows come
// along: that is why a token's bits do not depend on the batch it is computed in.

namespace stagecraft::STAGECRAFT_ISA {
namespace {

constexpr std::size_t kVecs = kPanelOutputs / kLanes;

// As many rows at a time as there are registers for.
#if defined(__AVX512F__)
constexpr int kRowsF32 = 12;  // 12 x 2 sums of 32 registers
constexpr int kRowsQ8 = 6;    // 6 x 2 whole and as many float ones
#elif defined(__aarch64__)
constexpr int kRowsF32 = 3;  // 3 x 8 of 32
constexpr int kRowsQ8 = 1;
#elif defined(__AVX2__)
constexpr int kRowsF32 = 3;  // 3 x 4 of 16
constexpr int kRowsQ8 = 2;
#else
constexpr int kRowsF32 = 1;
constexpr int kRowsQ8 = 1;
#endif

template <int Rows>
STAGECRAFT_INLINE void store_tile(const Vec (&acc)[Rows][kVecs], const TileArgs& t) {
  STAGECRAFT_UNROLL
  for (int r = 0; r < Rows; ++r) {
    STAGECRAFT_UNROLL
    for (std::size_t v = 0; v < kVecs; ++v) {
      store(t.out + r * t.out_stride + v * kLanes, acc[r][v]);
    }
  }
}

// A panel in 32-bit words or halves, [k][32]: `Load` makes a vector of floats of those at an
// address.
template <int Rows, class Stored, Vec (*Load)(const Stored*)>
void tile_by_one(const TileArgs& t) {
  const auto* w = reinterpret_cast<const Stored*>(t.panel);
  const auto* a = static_cast<const float*>(t.rows);
  Vec acc[Rows][kVecs] = {};
  for (std::size_t k = 0; k < t.inputs; ++k, w += kPanelOutputs) {
    Vec weight[kVecs];
    STAGECRAFT_UNROLL
    for (std::size_t v = 0; v < kVecs; ++v) weight[v] = Load(w + v * kLanes);
    STAGECRAFT_UNROLL
    for (int r = 0; r < Rows; ++r) {
      const Vec x = broadcast(a[r * t.row_stride + k]);
      STAGECRAFT_UNROLL
      for (std::size_t v = 0; v < kVecs; ++v) acc[r][v] = fma(x, weight[v], acc[r][v]);
    }
  }
  store_tile<Rows>(acc, t);
}
template <int Rows>
void tile_f32(const TileArgs& t) {
  tile_by_one<Rows, float, load>(t);
}
template <int Rows>
void tile_f16(const TileArgs& t) {
  tile_by_one<Rows, std::uint16_t, load_f16>(t);
}

// bf16, [k / 2][32][2]: a 32-bit word holds the weights of two inputs. `Multiply` adds its products
// with the row's two inputs at `a` to a sum.
template <int Rows, class Number, class Multiply>
STAGECRAFT_INLINE void tile_by_two(const TileArgs& t, Multiply multiply) {
  const std::byte* w = t.panel;
  Vec acc[Rows][kVecs] = {};
  for (std::size_t k = 0; k < t.inputs; k += 2, w += 4 * kPanelOutputs) {
    Ints pair[kVecs];
    STAGECRAFT_UNROLL
    for (std::size_t v = 0; v < kVecs; ++v) pair[v] = load_ints(w + 4 * kLanes * v);
    STAGECRAFT_UNROLL
    for (int r = 0; r < Rows; ++r) {
      multiply(pair, static_cast<const Number*>(t.rows) + r * t.row_stride + k, acc[r]);
    }
  }
  store_tile<Rows>(acc, t);
}
template <int Rows>
void tile_bf16(const TileArgs& t) {
  tile_by_two<Rows, float>(
      t, [](const Ints* pair, const float* a, Vec* acc) __attribute__((always_inline)) {
        const Vec even = broadcast(a[0]);
        const Vec odd = broadcast(a[1]);
        STAGECRAFT_UNROLL
        for (std::size_t v = 0; v < kVecs; ++v) {
          acc[v] = fma(even, as_float(pair[v] << 16), acc[v]);
          acc[v] = fma(odd, as_float(pair[v] & -65536), acc[v]);
        }
      });
}
#if defined(__AVX512BF16__)
template <int Rows>
void tile_rounded_bf16(const TileArgs& t) {
  tile_by_two<Rows, std::uint16_t>(
      t, [](const Ints* pair, const std::uint16_t* a, Vec* acc) __attribute__((always_inline)) {
        const Ints both = broadcast(load_as<std::int32_t>(a));
        STAGECRAFT_UNROLL
        for (std::size_t v = 0; v < kVecs; ++v) acc[v] = dot_bf16(acc[v], pair[v], both);
      });
}
#endif

// Bytes, a block of 32 inputs after the other: the integers of a block are summed exactly, then
// multiplied with both scales and added to the float sum.
//   q8   block: [8][32][4] bytes w + 128, then [32] f16 scales d           value: d * (byte - 128)
//   q4   block: [4][32][4] bytes, two weights each, then [32] f16 scales   value: d * (nibble - 8)
//   q4m  block: as q4, then [32] f16 minima m                              value: d * nibble + m
enum class Bytes { Q8, Q4, Q4M };

template <int Rows, Bytes kKind>
void tile_bytes(const TileArgs& t) {
  constexpr std::size_t kQuants = kPanelOutputs * (kKind == Bytes::Q8 ? 32 : 16);
  constexpr std::size_t kScales = kPanelOutputs * sizeof(std::uint16_t);
  const std::byte* block = t.panel;
  const auto* a = static_cast<const std::int8_t*>(t.rows);
  Vec acc[Rows][kVecs] = {};
  for (std::size_t b = 0; b < t.inputs / kQuantBlock; ++b) {
    Ints dot[Rows][kVecs];
    STAGECRAFT_UNROLL
    for (int r = 0; r < Rows; ++r) {
      const std::int32_t bias = kKind == Bytes::Q8 ? kByteBias : kKind == Bytes::Q4 ? 8 : 0;
      const Ints start = broadcast(-bias * t.sums[r * t.block_stride + b]);
      STAGECRAFT_UNROLL
      for (std::size_t v = 0; v < kVecs; ++v) dot[r][v] = start;
    }
    const auto four = [&](int r, int group) {
      return broadcast(load_as<std::int32_t>(a + r * t.row_stride + b * kQuantBlock + 4 * group));
    };
    if constexpr (kKind == Bytes::Q8) {
      STAGECRAFT_UNROLL
      for (int group = 0; group < 8; ++group) {
        Ints w[kVecs];
        STAGECRAFT_UNROLL
        for (std::size_t v = 0; v < kVecs; ++v) {
          w[v] = load_ints(block + 4 * (kPanelOutputs * group + kLanes * v));
        }
        STAGECRAFT_UNROLL
        for (int r = 0; r < Rows; ++r) {
          const Ints x = four(r, group);
          STAGECRAFT_UNROLL
          for (std::size_t v = 0; v < kVecs; ++v) dot[r][v] = dot_q8(dot[r][v], w[v], x);
        }
      }
    } else {
      STAGECRAFT_UNROLL
      for (int group = 0; group < 4; ++group) {
        Ints low[kVecs], high[kVecs];
        STAGECRAFT_UNROLL
        for (std::size_t v = 0; v < kVecs; ++v) {
          const Ints both = load_ints(block + 4 * (kPanelOutputs * group + kLanes * v));
          low[v] = both & 0x0f0f0f0f;
          high[v] = (both >> 4) & 0x0f0f0f0f;
        }
        STAGECRAFT_UNROLL
        for (int r = 0; r < Rows; ++r) {
          const Ints x = four(r, group), y = four(r, group + 4);
          STAGECRAFT_UNROLL
          for (std::size_t v = 0; v < kVecs; ++v) {
            dot[r][v] = dot_q4(dot_q4(dot[r][v], low[v], x), high[v], y);
          }
        }
      }
    }
    const auto* scales = reinterpret_cast<const std::uint16_t*>(block + kQuants);
    STAGECRAFT_UNROLL
    for (std::size_t v = 0; v < kVecs; ++v) {
      const Vec d = load_f16(scales + v * kLanes);
      STAGECRAFT_UNROLL
      for (int r = 0; r < Rows; ++r) {
        const Vec scale = d * broadcast(t.scales[r * t.block_stride + b]);
        acc[r][v] = fma(to_float(dot[r][v]), scale, acc[r][v]);
      }
      if constexpr (kKind == Bytes::Q4M) {
        const Vec m = load_f16(scales + kPanelOutputs + v * kLanes);
        STAGECRAFT_UNROLL
        for (int r = 0; r < Rows; ++r) {
          const std::size_t i = r * t.block_stride + b;
          acc[r][v] = fma(m, broadcast(t.scales[i] * static_cast<float>(t.sums[i])), acc[r][v]);
        }
      }
    }
    block += kQuants + kScales * (kKind == Bytes::Q4M ? 2 : 1);
  }
  store_tile<Rows>(acc, t);
}
template <int Rows>
void tile_q8(const TileArgs& t) {
  tile_bytes<Rows, Bytes::Q8>(t);
}
template <int Rows>
void tile_q4(const TileArgs& t) {
  tile_bytes<Rows, Bytes::Q4>(t);
}
template <int Rows>
void tile_q4m(const TileArgs& t) {
  tile_bytes<Rows, Bytes::Q4M>(t);
}

}  // namespace
}  // namespace stagecraft::STAGECRAFT_ISA
