#pragma once

#include <cstdint>
#include <span>

namespace stagecraft {

// Converts half-precision numbers to f32. Every f16 and bf16 value is also an f32 value, so nothing
// is lost: infinities, NaN, -0 and subnormals keep their meaning.
//
//   bits  [n]  read; n may be 0: the numbers as stored, one 16-bit word each
//   out   [n]  written; must not overlap bits
//
// May be called from several threads at once. The caller passes sizes that agree. The reference
// version checks this and throws Error (operators/check.h). Your version need not check it.

// bf16 is the upper half of an f32: 1 sign, 8 exponent and 7 mantissa bits.
void bf16_to_f32(std::span<const std::uint16_t> bits, std::span<float> out);

// IEEE 754 binary16: 1 sign, 5 exponent (bias 15) and 10 mantissa bits.
void f16_to_f32(std::span<const std::uint16_t> bits, std::span<float> out);

}  // namespace stagecraft
