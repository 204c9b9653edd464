#pragma once

#include <cstddef>
#include <span>

#include "tensor/dtype.h"

namespace stagecraft {

// Converts quantised blocks to f32, with the same bits as ggml's reference (ggml-quants.c,
// dequantize_row_*). A block holds small integers q and their scales:
//
//   Q4_0, Q5_0, Q8_0   32 elements   d * q                  q signed; stored as q + 8, + 16 and q
//   Q4_1, Q5_1         32 elements   d * q + m              q unsigned
//   Q3_K, Q6_K        256 elements   d * scale * q          q signed; a scale per 16 elements
//   Q2_K, Q4_K, Q5_K  256 elements   d * scale * q - dmin * min    q unsigned; a scale and a min
//                                                                  per 16, 32 and 32 elements
//   Q8_K              256 elements   d * q                  d in f32
//   IQ4_NL             32 elements   d * table[q]           16 values, closer together near 0
//   IQ4_XS            256 elements   d * scale * table[q]   the same values; a scale per 32
//   MXFP4              32 elements   d * table[q]           4-bit floats; d a power of 2
//
// d is an f16, except in Q8_K and MXFP4.
//
//   dtype   a quantised type
//   blocks  read: whole blocks, as stored
//   out     written: all elements of the blocks; must not overlap blocks
//
// Throws Error if dtype is not quantised or sizes disagree.
void dequantize(DType dtype, std::span<const std::byte> blocks, std::span<float> out);

// True for Q5_0 and IQ4_NL, which a GPU multiplies as Q8_0. Their elements are d * q, with d an f16
// and a q that fits into a signed byte, so the conversion loses nothing.
bool fits_q8_0(DType dtype);

// Converts blocks to Q8_0. out: as many blocks; must not overlap blocks. Throws Error unless
// fits_q8_0(dtype), or if sizes disagree.
void blocks_as_q8_0(DType dtype, std::span<const std::byte> blocks, std::span<std::byte> out);

}  // namespace stagecraft
