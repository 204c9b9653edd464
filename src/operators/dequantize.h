#pragma once

#include <cstddef>
#include <span>

#include "tensor/dtype.h"

namespace stagecraft {

// Quantised numbers to f32, bit for bit as ggml's reference does it (ggml-quants.c,
// dequantize_row_*). A block holds small integers q and what they are to be multiplied with:
//
//   Q4_0, Q5_0, Q8_0   32 elements   d * q                  q signed, or less half its range
//   Q4_1, Q5_1         32 elements   d * q + m              q from 0
//   Q3_K, Q6_K        256 elements   d * scale * q          a scale for each 16
//   Q2_K, Q4_K, Q5_K  256 elements   d * scale * q - dmin * min    for each 16, 32 and 32
//   Q8_K              256 elements   d * q                  d in f32
//   IQ4_NL             32 elements   d * table[q]           16 values, the denser the nearer to 0
//   IQ4_XS            256 elements   d * scale * table[q]   the same values, a scale for each 32
//   MXFP4              32 elements   d * table[q]           4-bit floats, d a power of 2
//
// All others than Q8_K and MXFP4 keep d in f16.
//
//   dtype   a quantised one
//   blocks  read: whole blocks, as stored
//   out     written: all their elements; must not overlap blocks
//
// Throws Error if dtype is not quantised or sizes disagree.
void dequantize(DType dtype, std::span<const std::byte> blocks, std::span<float> out);

// Whether each block is d * q with d in f16 and q in a byte, but is stored in fewer bits than Q8_0:
// Q5_0 and IQ4_NL. As Q8_0 it loses nothing.
bool fits_q8_0(DType dtype);

// Blocks of such a type as Q8_0. out: as many blocks. Throws Error as dequantize.
void blocks_as_q8_0(DType dtype, std::span<const std::byte> blocks, std::span<std::byte> out);

}  // namespace stagecraft
