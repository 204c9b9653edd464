// Right: with algorithms.
#include "operators/silu.h"

#include <algorithm>
#include <cmath>

#include "operators/swiglu.h"

namespace stagecraft {
namespace {

float silu_of(float x) { return x / (1.0f + std::exp(-x)); }

}  // namespace

void silu(std::span<const float> x, std::span<float> y) {
  std::ranges::transform(x, y.begin(), silu_of);
}

void swiglu(std::span<const float> gate, std::span<const float> up, std::span<float> y) {
  std::ranges::transform(gate, up, y.begin(), [](float g, float u) { return silu_of(g) * u; });
}

}  // namespace stagecraft
