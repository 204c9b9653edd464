// Right: from the end, with exp2 and a reciprocal.
#include "operators/silu.h"

#include <cmath>

#include "operators/swiglu.h"

namespace stagecraft {
namespace {

float silu_of(float x) { return x * (1.0f / (1.0f + std::exp2(-1.44269504f * x))); }

}  // namespace

void silu(std::span<const float> x, std::span<float> y) {
  for (std::size_t i = x.size(); i-- > 0;) y[i] = silu_of(x[i]);
}

void swiglu(std::span<const float> gate, std::span<const float> up, std::span<float> y) {
  for (std::size_t i = gate.size(); i-- > 0;) y[i] = up[i] * silu_of(gate[i]);
}

}  // namespace stagecraft
