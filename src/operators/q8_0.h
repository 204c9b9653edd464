#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace stagecraft {

// 32 numbers in 34 bytes, in the format Q8_0 of ggml and GGUF files: number i is scale * q[i].
struct BlockQ8_0 {
  static constexpr std::size_t kSize = 32;
  std::uint16_t scale;  // the bits of an f16; in a file of another program it may be negative
  std::int8_t q[kSize];
};
static_assert(sizeof(BlockQ8_0) == 34);

// Converts f32 to blocks, with the same bits as ggml's reference (ggml-quants.c,
// quantize_row_q8_0_ref). For each block, computed in f32:
//   d     = max_i |x[i]| / 127
//   scale = d as f16, rounded to the nearest, ties to even (operators/float_to_half.h does that)
//   q[i]  = round(x[i] * (1 / d)), ties away from zero; d is the f32 value, not yet rounded to f16
// For a block of zeros, the scale and all q are 0.
//
//   x       [32 * n]  read; n may be 0; finite; each d is 0 or rounds to a finite f16 that is not 0
//                     (it may be subnormal)
//   blocks  [n]       written; must not overlap x
//
// May be called from several threads at once. The caller passes sizes that agree. The reference
// version checks this and throws Error (operators/check.h). Your version need not check it.
void quantize_q8_0(std::span<const float> x, std::span<BlockQ8_0> blocks);

// Converts blocks to f32: x[i] = scale * q[i], exactly.
//
//   blocks  [n]       read; n may be 0; q may be any int8_t, also -128
//   x       [32 * n]  written; must not overlap blocks
//
// May be called from several threads at once. Sizes agree, as above.
void dequantize_q8_0(std::span<const BlockQ8_0> blocks, std::span<float> x);

// The dot product of two rows of blocks: the sum over blocks of scale_a * scale_b * s, where s is
// the sum of the block's 32 products q_a * q_b. These products are whole numbers, so s is exact.
//
//   a, b  [n]  read; n may be 0; q may be any int8_t, also -128
//
// May be called from several threads at once. Sizes agree, as above.
float dot_q8_0(std::span<const BlockQ8_0> a, std::span<const BlockQ8_0> b);

}  // namespace stagecraft
