#pragma once

#include "operators/kernels/kernels.h"
#include "operators/kernels/simd.h"

// Multiplies two rows at a time with a block of bytes, on processors that multiply matrices of
// bytes (Armv8.6's FEAT_I8MM): 32 products per instruction instead of 16. The instruction needs
// eight neighbouring inputs of an output, and a panel has four. So two groups of four are zipped:
//
//   panel, four bytes each                     weights, eight bytes each
//     group g      o0  o1  o2  o3     zip1     o0  o1
//     group g + 1  o0  o1  o2  o3     zip2     o2  o3     times the same eight inputs of r and s
//
// where r and s are two rows. Their sums lie side by side until the block is done:
//
//     dot[r]       o0  o1  o2  o3     zip1     o0r o0s o1r o1s
//     dot[s]       o0  o1  o2  o3     zip2     o2r o2s o3r o3s    uzp1 and uzp2 undo this
//
// Sums of integers are exact, so they have the same bits in any order.

#if defined(__ARM_FEATURE_MATMUL_INT8)
namespace stagecraft::STAGECRAFT_ISA {
namespace {

STAGECRAFT_INLINE Ints low_nibbles(Ints w) { return w & 0x0f0f0f0f; }
STAGECRAFT_INLINE Ints high_nibbles(Ints w) {
  return vreinterpretq_s32_u8(vreinterpretq_u8_s32(w) >> 4);
}

// dot[r][v] += the products of a block of 32 inputs, for all rows except an odd last one.
//   quants  the block's bytes in the panel, from the first output of dot[.][0] on
//   rows    the block's bytes of the first row; row_stride from row to row
// Nibbles: two weights per byte, as in q4; inputs 16 to 31 are in the high halves.
template <bool Nibbles, int Rows, std::size_t Vecs>
STAGECRAFT_INLINE void add_pairs(const std::byte* quants, const std::int8_t* rows,
                                 std::size_t row_stride, Ints (&dot)[Rows][Vecs]) {
  constexpr int kCount = Rows / 2;
  Ints sum[kCount][Vecs][2];
  STAGECRAFT_UNROLL
  for (int p = 0; p < kCount; ++p) {
    STAGECRAFT_UNROLL
    for (std::size_t v = 0; v < Vecs; ++v) {
      sum[p][v][0] = vzip1q_s32(dot[2 * p][v], dot[2 * p + 1][v]);
      sum[p][v][1] = vzip2q_s32(dot[2 * p][v], dot[2 * p + 1][v]);
    }
  }
  const auto inputs = [&](int p, int group) STAGECRAFT_INLINED {
    const std::int8_t* at = rows + 2 * p * row_stride + 4 * group;
    return vreinterpretq_s32_s8(vcombine_s8(vld1_s8(at), vld1_s8(at + row_stride)));
  };
  STAGECRAFT_UNROLL
  for (int group = 0; group < (Nibbles ? 4 : 8); group += 2) {
    Ints weights[Vecs][2];
    STAGECRAFT_UNROLL
    for (std::size_t v = 0; v < Vecs; ++v) {
      const std::byte* at = quants + 4 * (kPanelOutputs * group + kLanes * v);
      const Ints these = load_ints(at), next = load_ints(at + 4 * kPanelOutputs);
      weights[v][0] = vzip1q_s32(these, next);
      weights[v][1] = vzip2q_s32(these, next);
    }
    STAGECRAFT_UNROLL
    for (int half = 0; half < (Nibbles ? 2 : 1); ++half) {
      STAGECRAFT_UNROLL
      for (int p = 0; p < kCount; ++p) {
        const Ints x = inputs(p, group + 4 * half);
        STAGECRAFT_UNROLL
        for (std::size_t i = 0; i < 2 * Vecs; ++i) {
          Ints w = weights[i / 2][i % 2];
          if constexpr (Nibbles) w = half == 0 ? low_nibbles(w) : high_nibbles(w);
          sum[p][i / 2][i % 2] = dot_pairs(sum[p][i / 2][i % 2], w, x);
        }
      }
    }
  }
  STAGECRAFT_UNROLL
  for (int p = 0; p < kCount; ++p) {
    STAGECRAFT_UNROLL
    for (std::size_t v = 0; v < Vecs; ++v) {
      dot[2 * p][v] = vuzp1q_s32(sum[p][v][0], sum[p][v][1]);
      dot[2 * p + 1][v] = vuzp2q_s32(sum[p][v][0], sum[p][v][1]);
    }
  }
}

}  // namespace
}  // namespace stagecraft::STAGECRAFT_ISA
#endif
