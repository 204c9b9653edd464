#include "operators/q8_0.h"

#include "base/not_implemented.h"

namespace stagecraft {
namespace {

// Helpers of your own go here: nobody else can see them.

}  // namespace

// The contracts are in src/operators/q8_0.h.
void quantize_q8_0([[maybe_unused]] std::span<const float> x,
                   [[maybe_unused]] std::span<BlockQ8_0> blocks) {
  // For each block of 32 numbers:
  //   1. the largest |x|, and d, which makes it 127
  //   2. the scale: d as f16 (f32_to_f16 in operators/float_to_half.h takes spans of one, too)
  //   3. each q: x times 1 / d, rounded; where d is 0 there is no 1 / d, and every q is 0
  NOT_IMPLEMENTED("stage 10: quantize_q8_0");
}

void dequantize_q8_0([[maybe_unused]] std::span<const BlockQ8_0> blocks,
                     [[maybe_unused]] std::span<float> x) {
  // For each block: its scale as f32 (you wrote that in stage 5), times each q
  NOT_IMPLEMENTED("stage 10: dequantize_q8_0");
}

float dot_q8_0([[maybe_unused]] std::span<const BlockQ8_0> a,
               [[maybe_unused]] std::span<const BlockQ8_0> b) {
  // For each pair of blocks: the sum of the 32 products of whole numbers, then both scales; all
  // blocks added up. First right, then fast.
  NOT_IMPLEMENTED("stage 10: dot_q8_0");
}

}  // namespace stagecraft
