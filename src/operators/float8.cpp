#include "operators/float8.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

#include "operators/check.h"

namespace stagecraft {
namespace {

float value_of(std::uint32_t bits) {
  const std::uint32_t sign = (bits & 0x80u) << 24;
  const int exponent = static_cast<int>(bits >> 3 & 0xfu);
  const std::uint32_t mantissa = bits & 7u;
  if ((bits & 0x7fu) == 0x7fu) return std::bit_cast<float>(sign | 0x7fc00000u);
  const std::uint32_t whole = exponent == 0 ? mantissa : mantissa | 8u;  // 0: a subnormal
  const float magnitude =
      std::ldexp(static_cast<float>(whole), (exponent == 0 ? 1 : exponent) - 10);
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
}

std::array<float, 256> all_values() {
  std::array<float, 256> values;
  for (std::uint32_t bits = 0; bits < values.size(); ++bits) values[bits] = value_of(bits);
  return values;
}

}  // namespace

void f8_e4m3_to_f32(std::span<const std::byte> bytes, std::span<float> out) {
  static const std::array<float, 256> kValues = all_values();
  check_size("f8_e4m3_to_f32", "out", bytes.size(), out.size());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    out[i] = kValues[std::to_integer<unsigned>(bytes[i])];
  }
}

}  // namespace stagecraft
