#pragma once

#include <cstddef>
#include <span>

namespace stagecraft {

// Converts 8-bit floats to f32. Their format is e4m3fn: 1 sign, 4 exponent (bias 7) and 3 mantissa
// bits (Micikevicius et al. 2022, "FP8 formats for deep learning"). It has no infinities: the
// largest number is 448. A byte with all bits set, or all but the sign, is NaN.
//
//   bytes  [n]  read: the numbers as stored
//   out    [n]  written; must not overlap bytes
//
// Throws Error if sizes disagree.
void f8_e4m3_to_f32(std::span<const std::byte> bytes, std::span<float> out);

}  // namespace stagecraft
