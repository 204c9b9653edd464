// Right: by ldexp, from the definition.
#include "operators/half_to_float.h"

#include <bit>
#include <cmath>

namespace stagecraft {

void bf16_to_f32(std::span<const std::uint16_t> bits, std::span<float> out) {
  for (std::size_t i = 0; i < bits.size(); ++i) {
    const int exponent = bits[i] >> 7 & 255;
    const float mantissa = static_cast<float>(bits[i] & 127) / 128.0f;
    const float sign = bits[i] >> 15 != 0 ? -1.0f : 1.0f;
    if (exponent == 255) {
      out[i] = mantissa == 0.0f ? sign * INFINITY : NAN;
    } else {
      out[i] = sign * (exponent == 0 ? std::ldexp(mantissa, -126)
                                     : std::ldexp(1.0f + mantissa, exponent - 127));
    }
  }
}

void f16_to_f32(std::span<const std::uint16_t> bits, std::span<float> out) {
  for (std::size_t i = 0; i < bits.size(); ++i) {
    const std::uint32_t word = bits[i];
    const std::uint32_t sign = (word >> 15) << 31;
    const std::uint32_t exponent = (word >> 10) & 31;
    const std::uint32_t mantissa = word & 1023;
    if (exponent == 31) {
      out[i] = std::bit_cast<float>(sign | 0x7f800000 | mantissa << 13);
    } else if (exponent == 0) {
      const float small = static_cast<float>(mantissa) * 0x1p-24f;
      out[i] = sign != 0 ? -small : small;
    } else {
      out[i] = (sign != 0 ? -1.0f : 1.0f) *
               std::ldexp(1024.0f + static_cast<float>(mantissa), static_cast<int>(exponent) - 25);
    }
  }
}

}  // namespace stagecraft
