#pragma once

#include <string>
#include <vector>

namespace stagecraft::stages {

// A 16-bit number format by its definition in IEEE 754: sign, exponent, mantissa.
struct HalfFormat {
  std::string function;  // that converts it to f32
  int exponent_bits;
  int mantissa_bits;
  std::vector<unsigned> familiar;  // well-known values: 1, 1.5, -2.5, 0.15625

  unsigned exponent(unsigned word) const;
  unsigned mantissa(unsigned word) const;
  double value(unsigned word) const;
  bool is_finite(unsigned word) const;
  const char* kind(unsigned word) const;  // a key of stages/messages.json
  std::string bits(unsigned word) const;  // "0 01111 1000000000"
};

extern const HalfFormat kBf16;
extern const HalfFormat kF16;

}  // namespace stagecraft::stages
