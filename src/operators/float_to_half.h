#pragma once

#include <cstdint>
#include <span>

namespace stagecraft {

// f32 to half precision, the inverse of half_to_float.h. Rounds to the nearest number; of two
// equally near ones to the one whose last bit is 0, as IEEE 754 and PyTorch do. A number beyond the
// largest becomes infinity, one below the smallest becomes zero; the sign stays. NaN stays NaN.
//
//   values  [n]  read
//   bits    [n]  written: as stored, one 16-bit word each; must not overlap values
//
// Throws Error if sizes disagree.
void f32_to_bf16(std::span<const float> values, std::span<std::uint16_t> bits);
void f32_to_f16(std::span<const float> values, std::span<std::uint16_t> bits);

}  // namespace stagecraft
