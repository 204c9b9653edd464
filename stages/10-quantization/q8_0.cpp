#include "operators/q8_0.h"

#include "base/not_implemented.h"
#include "operators/float_to_half.h"
#include "operators/half_to_float.h"

namespace stagecraft {
namespace {

// Write your own helper functions here. They are visible in this file only.

}  // namespace

// The contracts are in src/operators/q8_0.h.
void quantize_q8_0([[maybe_unused]] std::span<const float> x,
                   [[maybe_unused]] std::span<BlockQ8_0> blocks) {
  NOT_IMPLEMENTED("stage 10: quantize_q8_0");
}

void dequantize_q8_0([[maybe_unused]] std::span<const BlockQ8_0> blocks,
                     [[maybe_unused]] std::span<float> x) {
  NOT_IMPLEMENTED("stage 10: dequantize_q8_0");
}

float dot_q8_0([[maybe_unused]] std::span<const BlockQ8_0> a,
               [[maybe_unused]] std::span<const BlockQ8_0> b) {
  NOT_IMPLEMENTED("stage 10: dot_q8_0");
}

}  // namespace stagecraft
