#pragma once

#include <cstddef>
#include <span>

namespace stagecraft {

// Numbers of 8 bits to f32: e4m3fn, which is 1 sign, 4 exponent (bias 7) and 3 mantissa bits
// (Micikevicius et al. 2022, "FP8 formats for deep learning"). There are no infinities: the largest
// number is 448, and all bits but the sign set is NaN.
//
//   bytes  [n]  read: the numbers as stored
//   out    [n]  written; must not overlap bytes
//
// Throws Error if sizes disagree.
void f8_e4m3_to_f32(std::span<const std::byte> bytes, std::span<float> out);

}  // namespace stagecraft
