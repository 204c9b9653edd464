#pragma once

#include <cstdint>
#include <span>

namespace stagecraft {

// f32 to half precision, the way back from widen.h: to the nearest, of two equally near to the one
// whose last bit is 0, as IEEE 754 and PyTorch have it. What is beyond the largest becomes
// infinity, what is below the smallest zero; the sign stays. NaN stays NaN.
//
//   values  [n]  read
//   bits    [n]  written: as stored, one 16-bit word each; must not overlap values
//
// Throws Error if sizes disagree.
void narrow_bf16(std::span<const float> values, std::span<std::uint16_t> bits);
void narrow_f16(std::span<const float> values, std::span<std::uint16_t> bits);

}  // namespace stagecraft
