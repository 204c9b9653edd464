// mistakes.json holds edits of this program, which is right.
#include "operators/half_to_float.h"

#include <bit>

namespace stagecraft {

void bf16_to_f32(std::span<const std::uint16_t> bits, std::span<float> out) {
  for (std::size_t i = 0; i < bits.size(); ++i) {
    out[i] = std::bit_cast<float>(static_cast<std::uint32_t>(bits[i]) << 16);
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
      out[i] = std::bit_cast<float>(sign | (exponent - 15 + 127) << 23 | mantissa << 13);
    }
  }
}

}  // namespace stagecraft
