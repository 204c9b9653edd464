// Right: subnormal numbers shifted bit by bit, and a table of all words.
#include "operators/half_to_float.h"

#include <bit>
#include <vector>

namespace stagecraft {
namespace {

float half(std::uint16_t word) {
  std::uint32_t mantissa = word & 1023;
  std::uint32_t exponent = word >> 10 & 31;
  const std::uint32_t sign = static_cast<std::uint32_t>(word >> 15) << 31;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7fc00000 * (mantissa != 0) | 0x7f800000);
  if (exponent == 0 && mantissa == 0) return std::bit_cast<float>(sign);
  exponent += 112;
  if (exponent == 112) {  // subnormal: shift until its highest one is the hidden one
    for (++exponent; (mantissa & 1024) == 0; --exponent) mantissa *= 2;
  }
  return std::bit_cast<float>(sign | exponent << 23 | (mantissa & 1023) << 13);
}

}  // namespace

void bf16_to_f32(std::span<const std::uint16_t> bits, std::span<float> out) {
  for (std::size_t i = bits.size(); i-- > 0;) {
    out[i] = std::bit_cast<float>(static_cast<std::uint32_t>(bits[i]) << 16);
  }
}

void f16_to_f32(std::span<const std::uint16_t> bits, std::span<float> out) {
  static const std::vector<float> table = [] {
    std::vector<float> all;
    for (std::uint32_t word = 0; word < 65536; ++word) {
      all.push_back(half(static_cast<std::uint16_t>(word)));
    }
    return all;
  }();
  for (std::size_t i = 0; i < bits.size(); ++i) out[i] = table[bits[i]];
}

}  // namespace stagecraft
