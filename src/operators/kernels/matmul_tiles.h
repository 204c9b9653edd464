#pragma once

#include "operators/kernels/i8mm_pairs.h"
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

// As many rows and vectors of a panel at a time as there are registers for their sums: 24 of 32, 12
// of 16 or so. Where kVecs is more than that, the panel is gone through again for the rest of it.
// That costs little for many rows, for which a panel comes from a cache. Few rows have registers to
// spare, and go through whole lines of it.
struct TileShape {
  int rows;
  std::size_t vecs;
  int rows_of_whole_lines = 0;

  constexpr std::size_t vecs_of(int n) const { return n <= rows_of_whole_lines ? kVecs : vecs; }
};
#if defined(__AVX512F__)
constexpr TileShape kFloats{12, 2}, kHalves{12, 2}, kBytes{6, 2};
#elif defined(__ARM_FEATURE_MATMUL_INT8)
// Bytes, see i8mm_pairs.h: 8 sums of integers and 8 of floats, 4 vectors of zipped weights, of
// which the nibbles take 2 more, and a pair of rows: 23 of 32. With 6 rows it would be 31, and GCC
// keeps sums in memory. A single row goes through whole lines of the cache, as it does without
// pairs.
constexpr TileShape kFloats{6, 4}, kHalves{6, 4, 1}, kBytes{4, 2, 1};
#elif defined(__aarch64__)
constexpr TileShape kFloats{6, 4}, kHalves{6, 4, 1}, kBytes{3, 4};
#elif defined(__AVX2__)
constexpr TileShape kFloats{6, 2, 3}, kHalves{6, 2, 3}, kBytes{4, 2, 2};
#else
constexpr TileShape kFloats{2, 4}, kHalves{1, 4}, kBytes{1, 4};
#endif

// A panel that the kernel comes to is in the memory still, and the first of its tiles would wait
// for each line. So the tiles of the panel before it ask for it, evenly: many requests at once
// would wait for each other.
template <int Rows>
STAGECRAFT_INLINE void fetch(const TileArgs& t, std::size_t k) {
  if constexpr (Rows > 1) __builtin_prefetch(t.ahead + k * t.ahead_step);
}

// A single row goes straight through its panels. The processor alone does not read far enough ahead
// of it, so it is asked for what it needs after the n_bytes at `at`: those 2,048 bytes further on
// (of 1,024 to 8,192, the fastest on a Xeon). What lies elsewhere is needed later, so the second
// cache will do; its queue of requests is longer, too.
// kShortSteps: n_bytes take a few instructions only, so that the processor comes to the loads of
// the next ones early enough by itself. A Zen 3 that is asked all the same reads f32 at 17 GB/s,
// and at 21 otherwise. (Bytes at 20, otherwise 17.) Where there is AVX-512 it was not measured.
template <int Rows, std::size_t n_bytes, bool kShortSteps = false>
STAGECRAFT_INLINE void fetch_straight_on(const TileArgs& t, const std::byte* at) {
  if constexpr (Rows == 1) {
    constexpr int kSecondCache = 1;
    if (t.to_next == 0) {
      if constexpr (kShortSteps && kLanes == 8) return;
      STAGECRAFT_UNROLL
      for (std::size_t i = 0; i < n_bytes; i += 64) __builtin_prefetch(at + 2048 + i);
    } else {
      STAGECRAFT_UNROLL
      for (std::size_t i = 0; i < n_bytes; i += 64) {
        __builtin_prefetch(at + t.to_next + i, 0, kSecondCache);
      }
    }
  }
}

// Makes the sums of some vectors of a panel: sums(first, acc) for the kVecs from `first` on.
template <int Rows, std::size_t Vecs, class Sums>
STAGECRAFT_INLINE void tile(const TileArgs& t, Sums sums) {
  for (std::size_t first = 0; first < kVecs; first += Vecs) {
    Vec acc[Rows][Vecs] = {};
    sums(first, acc);
    STAGECRAFT_UNROLL
    for (int r = 0; r < Rows; ++r) {
      STAGECRAFT_UNROLL
      for (std::size_t v = 0; v < Vecs; ++v) {
        float* out = t.out + r * t.out_stride + (first + v) * kLanes;
        store(out, t.add ? load(out) + acc[r][v] : acc[r][v]);
      }
    }
  }
}

// What is multiplied as floats, one input after the other, `kInputBytes` each: get(w, i) makes a
// vector of the outputs from i on of the input at w.
template <int Rows, std::size_t Vecs, std::size_t kInputBytes, class Get>
STAGECRAFT_INLINE void tile_floats(const TileArgs& t, Get get) {
  const auto* a = static_cast<const float*>(t.rows);
  tile<Rows, Vecs>(t, [&](std::size_t first, Vec(&acc)[Rows][Vecs]) STAGECRAFT_INLINED {
    const std::byte* w = t.panel;
    // The loop takes fewer instructions: with AVX2, prompts of f16 take 3% less time.
    STAGECRAFT_UNROLL_BY_2
    for (std::size_t k = 0; k < t.inputs; ++k, w += kInputBytes) {
      fetch<Rows>(t, k);
      fetch_straight_on<Rows, kInputBytes, kInputBytes == 4 * kPanelOutputs>(t, w);
      Vec weight[Vecs];
      STAGECRAFT_UNROLL
      for (std::size_t v = 0; v < Vecs; ++v) weight[v] = get(w, (first + v) * kLanes);
      STAGECRAFT_UNROLL
      for (int r = 0; r < Rows; ++r) {
        const Vec x = broadcast(a[r * t.row_stride + k]);
        STAGECRAFT_UNROLL
        for (std::size_t v = 0; v < Vecs; ++v) acc[r][v] = fma(x, weight[v], acc[r][v]);
      }
    }
  });
}
template <int Rows>
void tile_f32(const TileArgs& t) {
  tile_floats<Rows, kFloats.vecs_of(Rows), 4 * kPanelOutputs>(
      t, [](const std::byte* w, std::size_t i)
             STAGECRAFT_INLINED { return load(reinterpret_cast<const float*>(w) + i); });
}
template <int Rows>
void tile_f16(const TileArgs& t) {
  tile_floats<Rows, kHalves.vecs_of(Rows), 2 * kPanelOutputs>(
      t, [](const std::byte* w, std::size_t i) STAGECRAFT_INLINED {
        return load_f16(reinterpret_cast<const std::uint16_t*>(w) + i);
      });
}
// An input's scale, then its bytes. The product of the two is rounded once more than a weight that
// is stored as a float, and costs one multiplication for all rows.
template <int Rows>
void tile_q8_by_input(const TileArgs& t) {
  tile_floats<Rows, kHalves.vecs_of(Rows), sizeof(float) + kPanelOutputs>(
      t, [](const std::byte* w, std::size_t i) STAGECRAFT_INLINED {
        return load_i8(w + sizeof(float) + i) * broadcast(load_as<float>(w));
      });
}

// bf16, [k / 2][32][2]: a 32-bit word holds the weights of two inputs, the first in its lower half.
template <int Rows>
void tile_bf16(const TileArgs& t) {
  constexpr std::size_t Vecs = kHalves.vecs_of(Rows);
  tile<Rows, Vecs>(t, [&](std::size_t first, Vec(&acc)[Rows][Vecs]) STAGECRAFT_INLINED {
    const std::byte* w = t.panel + 4 * kLanes * first;
    const auto* a = static_cast<const float*>(t.rows);
    for (std::size_t k = 0; k < t.inputs; k += 2, w += 4 * kPanelOutputs) {
      fetch<Rows>(t, k);
      fetch_straight_on<Rows, 4 * kPanelOutputs, true>(t, w);
      STAGECRAFT_UNROLL
      for (int second = 0; second < 2; ++second) {
        Vec weight[Vecs];
        STAGECRAFT_UNROLL
        for (std::size_t v = 0; v < Vecs; ++v) {
          const Ints pair = load_ints(w + 4 * kLanes * v);
          weight[v] = as_float(second == 0 ? pair << 16 : pair & -65536);
        }
        STAGECRAFT_UNROLL
        for (int r = 0; r < Rows; ++r) {
          const Vec x = broadcast(a[r * t.row_stride + k + second]);
          STAGECRAFT_UNROLL
          for (std::size_t v = 0; v < Vecs; ++v) acc[r][v] = fma(x, weight[v], acc[r][v]);
        }
      }
    }
  });
}

#if defined(__AVX512BF16__)
template <int Rows>
void tile_rounded_bf16(const TileArgs& t) {
  constexpr std::size_t Vecs = kFloats.vecs;
  tile<Rows, Vecs>(t, [&](std::size_t first, Vec(&acc)[Rows][Vecs]) STAGECRAFT_INLINED {
    const std::byte* w = t.panel + 4 * kLanes * first;
    for (std::size_t k = 0; k < t.inputs; k += 2, w += 4 * kPanelOutputs) {
      fetch<Rows>(t, k);
      Ints pair[Vecs];
      STAGECRAFT_UNROLL
      for (std::size_t v = 0; v < Vecs; ++v) pair[v] = load_ints(w + 4 * kLanes * v);
      STAGECRAFT_UNROLL
      for (int r = 0; r < Rows; ++r) {
        const auto* a = static_cast<const std::uint16_t*>(t.rows) + r * t.row_stride + k;
        const Ints both = broadcast(load_as<std::int32_t>(a));
        STAGECRAFT_UNROLL
        for (std::size_t v = 0; v < Vecs; ++v) acc[r][v] = dot_bf16(acc[r][v], pair[v], both);
      }
    }
  });
}
#endif

// Bytes, a block of 32 inputs after the other: the integers of a block are summed exactly, then
// multiplied with both scales and added to the float sum.
//   q8   block: [8][32][4] bytes w + 128, then [32] f16 scales d           value: d * (byte - 128)
//   q4   block: [4][32][4] bytes, two weights each, then [32] f16 scales   value: d * (nibble - 8)
//   q4m  block: as q4, then [32] f16 minima m                              value: d * nibble + m
// K-quants have a header of their own, k_quant_tiles.h.
enum class Quants { Q8, Q4, Q4_1, Q4_K, Q5_K, Q6_K, IQ4_XS };

// Where a panel holds weight + bias, a dot product begins with what the bias adds, taken off.
// sum_of(r): the sum of the bytes of row r that it multiplies.
template <int Rows, std::size_t Vecs, class SumOf>
STAGECRAFT_INLINE void begin_dots(std::int32_t bias, SumOf sum_of, Ints (&dot)[Rows][Vecs]) {
  STAGECRAFT_UNROLL
  for (int r = 0; r < Rows; ++r) {
    const Ints start = broadcast(-bias * sum_of(r));
    STAGECRAFT_UNROLL
    for (std::size_t v = 0; v < Vecs; ++v) dot[r][v] = start;
  }
}

template <int Rows, Quants kKind>
void tile_bytes(const TileArgs& t) {
  constexpr std::size_t Vecs = kBytes.vecs_of(Rows);
  constexpr std::size_t kQuantBytes = kPanelOutputs * (kKind == Quants::Q8 ? 32 : 16);
  constexpr std::size_t kScaleBytes = kPanelOutputs * sizeof(std::uint16_t);
  constexpr std::size_t kBlockBytes = kQuantBytes + kScaleBytes * (kKind == Quants::Q4_1 ? 2 : 1);
  constexpr std::int32_t kBias = kKind == Quants::Q8 ? kByteBias : kKind == Quants::Q4 ? 8 : 0;
  tile<Rows, Vecs>(t, [&](std::size_t first, Vec(&acc)[Rows][Vecs]) STAGECRAFT_INLINED {
    const std::byte* block = t.panel;
    for (std::size_t b = 0; b < t.inputs / kQuantBlock; ++b, block += kBlockBytes) {
      const auto* a = static_cast<const std::int8_t*>(t.rows) + b * kQuantBlock;
      const auto four = [&](int r, int group) STAGECRAFT_INLINED {  // bytes of a row, in all lanes
        return broadcast(load_as<std::int32_t>(a + r * t.row_stride + 4 * group));
      };
      const auto quants = [&](int group, std::size_t v) STAGECRAFT_INLINED {
        return load_ints(block + 4 * (kPanelOutputs * group + kLanes * (first + v)));
      };
      Ints dot[Rows][Vecs];
      const auto sum_of_block = [&](int r) STAGECRAFT_INLINED {
        return t.sums[r * t.block_stride + b].all;
      };
      begin_dots(kBias, sum_of_block, dot);
#if defined(__ARM_FEATURE_MATMUL_INT8)
      constexpr int kInPairs = Rows / 2 * 2;  // these are done before the loop
      if constexpr (kInPairs > 0) {
        add_pairs<kKind != Quants::Q8>(block + 4 * kLanes * first, a, t.row_stride, dot);
      }
#else
      constexpr int kInPairs = 0;
#endif
      constexpr int kGroups = kKind == Quants::Q8 ? 8 : 4;
      STAGECRAFT_UNROLL
      for (int group = 0; group < kGroups; ++group) {
        constexpr std::size_t kInputs = kQuantBlock / kGroups;
        fetch<Rows>(t, b * kQuantBlock + group * kInputs);
        fetch<Rows>(t, b * kQuantBlock + group * kInputs + kInputs / 2);
        fetch_straight_on<Rows, 4 * kPanelOutputs>(t, block + 4 * kPanelOutputs * group);
        Ints low[Vecs], high[Vecs];
        STAGECRAFT_UNROLL
        for (std::size_t v = 0; v < Vecs; ++v) {
          low[v] = quants(group, v);
          if constexpr (kKind == Quants::Q8) continue;
          high[v] = (low[v] >> 4) & 0x0f0f0f0f;
          low[v] &= 0x0f0f0f0f;
        }
        STAGECRAFT_UNROLL
        for (int r = kInPairs; r < Rows; ++r) {
          const Ints x = four(r, group);
          STAGECRAFT_UNROLL
          for (std::size_t v = 0; v < Vecs; ++v) {
            if constexpr (kKind == Quants::Q8) {
              dot[r][v] = dot_q8(dot[r][v], low[v], x);
            } else {
              dot[r][v] = dot_two_small(dot[r][v], low[v], x, high[v], four(r, group + 4));
            }
          }
        }
      }
      const auto* scales = reinterpret_cast<const std::uint16_t*>(block + kQuantBytes);
      STAGECRAFT_UNROLL
      for (std::size_t v = 0; v < Vecs; ++v) {
        const std::uint16_t* at = scales + (first + v) * kLanes;
        const Vec d = load_f16(at);
        STAGECRAFT_UNROLL
        for (int r = 0; r < Rows; ++r) {
          const float scale = t.scales[r * t.block_stride + b];
          acc[r][v] = fma(to_float(dot[r][v]), d * broadcast(scale), acc[r][v]);
        }
        if constexpr (kKind == Quants::Q4_1) {
          const Vec m = load_f16(at + kPanelOutputs);
          STAGECRAFT_UNROLL
          for (int r = 0; r < Rows; ++r) {
            const std::size_t i = r * t.block_stride + b;
            acc[r][v] =
                fma(m, broadcast(t.scales[i] * static_cast<float>(t.sums[i].all)), acc[r][v]);
          }
        }
      }
    }
  });
}
template <int Rows>
void tile_q8(const TileArgs& t) {
  tile_bytes<Rows, Quants::Q8>(t);
}
template <int Rows>
void tile_q4(const TileArgs& t) {
  tile_bytes<Rows, Quants::Q4>(t);
}
template <int Rows>
void tile_q4_1(const TileArgs& t) {
  tile_bytes<Rows, Quants::Q4_1>(t);
}

}  // namespace
}  // namespace stagecraft::STAGECRAFT_ISA
