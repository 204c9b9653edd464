#include "operators/float_to_half.h"

#include <bit>
#include <cmath>

#include "operators/check.h"

namespace stagecraft {
namespace {

std::uint16_t rounded_to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>(bits >> 16 | 0x40u);  // NaN stays NaN
  return static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

std::uint16_t rounded_to_f16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  std::uint32_t half = 0;
  if (std::isnan(value)) {
    half = 0x7e00u;
  } else if (magnitude >= std::bit_cast<std::uint32_t>(65520.0f)) {
    half = 0x7c00u;  // half-way between the largest f16, 65504, and 65536
  } else if (magnitude < std::bit_cast<std::uint32_t>(0x1p-14f)) {
    // Subnormals are multiples of 2^-24, the last bit of 0.5: adding 0.5 rounds to such a multiple.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    half = std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(0.5f);
  } else {
    // Drops 13 bits of the mantissa. A carry out of the mantissa correctly increases the exponent.
    const std::uint32_t rounded = magnitude + 0xfffu + (magnitude >> 13 & 1u);
    half = (rounded >> 13) - ((127u - 15u) << 10);
  }
  return static_cast<std::uint16_t>(sign | half);
}

}  // namespace

void f32_to_bf16(std::span<const float> values, std::span<std::uint16_t> bits) {
  check_size("f32_to_bf16", "bits", values.size(), bits.size());
  for (std::size_t i = 0; i < values.size(); ++i) bits[i] = rounded_to_bf16(values[i]);
}

void f32_to_f16(std::span<const float> values, std::span<std::uint16_t> bits) {
  check_size("f32_to_f16", "bits", values.size(), bits.size());
  for (std::size_t i = 0; i < values.size(); ++i) bits[i] = rounded_to_f16(values[i]);
}

}  // namespace stagecraft
