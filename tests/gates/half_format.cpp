#include "tests/gates/half_format.h"

#include <fmt/format.h>

#include <cmath>

namespace stagecraft::stages {
namespace {

unsigned ones(int bits) { return (1u << bits) - 1; }

}  // namespace

const HalfFormat kBf16 = {"bf16_to_f32", 8, 7, {0x3f80, 0x3fc0, 0xc020, 0x3e20}};
const HalfFormat kF16 = {"f16_to_f32", 5, 10, {0x3c00, 0x3e00, 0xc100, 0x3100}};

unsigned HalfFormat::exponent(unsigned word) const {
  return (word >> mantissa_bits) & ones(exponent_bits);
}

unsigned HalfFormat::mantissa(unsigned word) const { return word & ones(mantissa_bits); }

bool HalfFormat::is_finite(unsigned word) const { return exponent(word) != ones(exponent_bits); }

double HalfFormat::value(unsigned word) const {
  const double sign = (word & 0x8000u) != 0 ? -1.0 : 1.0;
  if (!is_finite(word)) return mantissa(word) == 0 ? sign * INFINITY : NAN;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const double fraction = std::ldexp(mantissa(word), -mantissa_bits);
  if (exponent(word) == 0) return sign * std::ldexp(fraction, 1 - bias);
  return sign * std::ldexp(1.0 + fraction, static_cast<int>(exponent(word)) - bias);
}

const char* HalfFormat::kind(unsigned word) const {
  if (!is_finite(word)) return mantissa(word) == 0 ? "kind_infinite" : "kind_nan";
  if (exponent(word) != 0) return "kind_normal";
  return mantissa(word) == 0 ? "kind_zero" : "kind_subnormal";
}

std::string HalfFormat::bits(unsigned word) const {
  return fmt::format("{} {:0{}b} {:0{}b}", word >> 15, exponent(word), exponent_bits,
                     mantissa(word), mantissa_bits);
}

}  // namespace stagecraft::stages
