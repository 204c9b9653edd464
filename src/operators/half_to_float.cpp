// This gives away stage 5: it is our answer to stages/05-parameters/half_to_float.cpp.
#include "operators/half_to_float.h"

#include <bit>

#include "operators/check.h"

namespace stagecraft {
namespace {

float value_of_f16(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const std::uint32_t exponent = (half >> 10) & 0x1fu;
  const std::uint32_t mantissa = half & 0x3ffu;
  if (exponent == 0) {  // zero or subnormal: mantissa * 2^-24, exact in f32
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
  }
  if (exponent == 0x1f) {  // infinity or NaN
    return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  }
  return std::bit_cast<float>(sign | ((exponent + 127 - 15) << 23) | (mantissa << 13));
}

}  // namespace

void bf16_to_f32(std::span<const std::uint16_t> bits, std::span<float> out) {
  check_size("bf16_to_f32", "out", bits.size(), out.size());
  for (std::size_t i = 0; i < bits.size(); ++i) {
    out[i] = std::bit_cast<float>(static_cast<std::uint32_t>(bits[i]) << 16);
  }
}

void f16_to_f32(std::span<const std::uint16_t> bits, std::span<float> out) {
  check_size("f16_to_f32", "out", bits.size(), out.size());
  for (std::size_t i = 0; i < bits.size(); ++i) out[i] = value_of_f16(bits[i]);
}

}  // namespace stagecraft
