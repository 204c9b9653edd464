#include "operators/half_to_float.h"

#include <bit>

#include "base/not_implemented.h"

namespace stagecraft {
namespace {

// Helpers of your own go here: nobody else can see them.

}  // namespace

// 5.2. The contract is in src/operators/half_to_float.h. std::bit_cast<float>(word) makes the float
// that has the bits of a std::uint32_t.
void bf16_to_f32([[maybe_unused]] std::span<const std::uint16_t> bits,
                 [[maybe_unused]] std::span<float> out) {
  // For each word: it is the upper half of the f32.
  NOT_IMPLEMENTED("stage 5.2: bf16_to_f32");
}

void f16_to_f32([[maybe_unused]] std::span<const std::uint16_t> bits,
                [[maybe_unused]] std::span<float> out) {
  // For each word:
  // 1. take it apart: sign (1 bit), exponent (5), mantissa (10)
  // 2. exponent 31 is infinity (mantissa 0) or NaN
  // 3. exponent 0 is mantissa * 2^-24: zero, or a subnormal number
  // 4. all others: put the exponent, less 15 and plus 127, and the mantissa where an f32 has them
  // 5. do not lose the sign on any of these ways: -0 is not 0
  NOT_IMPLEMENTED("stage 5.2: f16_to_f32");
}

}  // namespace stagecraft
