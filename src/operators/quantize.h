#pragma once

#include <cstddef>
#include <span>

#include "tensor/dtype.h"

namespace stagecraft {

// f32 to blocks of 32 small integers that share a scale: the way back from dequantize.h, bit for
// bit as ggml's reference goes it (ggml-quants.c, quantize_row_*_ref).
//
//   Q8_0   d = max |x| / 127                    q = round(x / d), halves away from zero
//   Q4_0   d = x / -8, for the x farthest out   q = min(15, floor(x / d + 8.5))
//   Q4_1   d = (max - min) / 15, m = min        q = min(15, floor((x - m) / d + 0.5))
//
// The division is a product with 1 / d in f32, and 0 where d is 0. d and m are stored as f16, q is
// found with the d that was not yet rounded. Two q of 4 bits share a byte: of 32, element i the low
// half of byte i, element 16 + i the high one.
//
//   dtype   one of these three
//   values  read: whole blocks of 32
//   blocks  written: as stored, dtype_block(dtype).bytes each; must not overlap values
//
// Throws Error if dtype is another, if sizes disagree, and naming the element if a number is no
// number, infinite or so large that the f16 which must carry it is.
void quantize(DType dtype, std::span<const float> values, std::span<std::byte> blocks);

}  // namespace stagecraft
