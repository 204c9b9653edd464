#pragma once

#include <cstddef>
#include <span>

#include "tensor/dtype.h"

namespace stagecraft {

// Converts f32 to blocks of 32 small integers that share a scale: the inverse of dequantize.h, with
// the same bits as ggml's reference (ggml-quants.c, quantize_row_*_ref).
//
//   Q8_0   d = max |x| / 127                    q = round(x / d), ties away from zero
//   Q4_0   d = x / -8, for the largest |x|      q = min(15, floor(x / d + 8.5))
//   Q4_1   d = (max - min) / 15, m = min        q = min(15, floor((x - m) / d + 0.5))
//
// The division is a multiplication by 1 / d in f32, or by 0 if 1 / d is infinite. d and m are
// stored as f16; q is computed with the f32 values. Two 4-bit q share a byte: byte i holds element
// i in its low half and element 16 + i in its high half.
//
//   dtype   one of these three
//   values  read: whole blocks of 32
//   blocks  written: as stored, dtype_block(dtype).bytes each; must not overlap values
//   first   the index of the first value, for messages
//
// Throws Error if dtype is not one of these or sizes disagree. Also throws Error, with the index of
// the element, if a value is NaN or infinite, or so large that d or m becomes infinite as f16.
void quantize(DType dtype, std::span<const float> values, std::span<std::byte> blocks,
              std::size_t first = 0);

}  // namespace stagecraft
