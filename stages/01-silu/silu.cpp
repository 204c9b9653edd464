#include "operators/silu.h"

#include "base/not_implemented.h"
#include "operators/swiglu.h"

namespace stagecraft {
namespace {

// Write your own helper functions here. They are visible in this file only.

}  // namespace

// The contract is in src/operators/silu.h.
void silu([[maybe_unused]] std::span<const float> x, [[maybe_unused]] std::span<float> y) {
  // For each i:
  //   1. compute the sigmoid of x[i]: a number between 0 and 1
  //   2. y[i] is x[i] times this sigmoid
  NOT_IMPLEMENTED("stage 1: silu");
}

// The contract is in src/operators/swiglu.h.
void swiglu([[maybe_unused]] std::span<const float> gate,
            [[maybe_unused]] std::span<const float> up, [[maybe_unused]] std::span<float> y) {
  // For each i:
  //   1. compute silu of gate[i]
  //   2. y[i] is this number times up[i]
  // y may be the same memory as gate or up: read both before you write y[i].
  NOT_IMPLEMENTED("stage 1: swiglu");
}

}  // namespace stagecraft
