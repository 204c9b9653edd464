#include "operators/float_to_half.h"

#include <bit>
#include <cmath>

#include "operators/check.h"

namespace stagecraft {
namespace {

std::uint16_t rounded_to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>(bits >> 16 | 0x40u);  // stays one
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
    half = 0x7c00u;  // beyond the middle between the largest, 65504, and what would follow
  } else if (magnitude < std::bit_cast<std::uint32_t>(0x1p-14f)) {
    // A subnormal counts 2^-24. Added to 0.5, whose last bit is 2^-24, the sum is rounded to those.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    half = std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(0.5f);
  } else {
    // 13 bits of the mantissa go. A carry out of it is the next exponent, as it should be.
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
