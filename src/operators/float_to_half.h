#pragma once

#include <cstdint>
#include <span>

namespace stagecraft {

// Converts f32 to half precision, the inverse of half_to_float.h. Rounds to the nearest number; if
// two are equally near, to the one whose last bit is 0 (ties to even), as IEEE 754 and PyTorch do.
// A magnitude that is too large becomes infinity, one that is too small becomes zero; the sign
// stays. NaN stays NaN.
//
//   values  [n]  read
//   bits    [n]  written: as stored, one 16-bit word each; must not overlap values
//
// Throws Error if sizes disagree.
void f32_to_bf16(std::span<const float> values, std::span<std::uint16_t> bits);
void f32_to_f16(std::span<const float> values, std::span<std::uint16_t> bits);

}  // namespace stagecraft
