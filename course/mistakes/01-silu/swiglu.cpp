// mistakes.json holds edits of this program, which is right.
#include "operators/silu.h"

#include <cmath>

#include "operators/swiglu.h"

namespace stagecraft {
namespace {

float silu_of(float x) { return x / (1.0f + std::exp(-x)); }

}  // namespace

void silu(std::span<const float> x, std::span<float> y) {
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = silu_of(x[i]);
}

void swiglu(std::span<const float> gate, std::span<const float> up, std::span<float> y) {
  for (std::size_t i = 0; i < gate.size(); ++i) y[i] = silu_of(gate[i]) * up[i];
}

}  // namespace stagecraft
