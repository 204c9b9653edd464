// Right: two branches, so that exp only shrinks.
#include "operators/silu.h"

#include <cmath>

#include "operators/swiglu.h"

namespace stagecraft {
namespace {

float silu_of(float x) {
  const float e = std::exp(-std::fabs(x));
  return x < 0.0f ? x * e / (1.0f + e) : x / (1.0f + e);
}

}  // namespace

void silu(std::span<const float> x, std::span<float> y) {
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = silu_of(x[i]);
}

void swiglu(std::span<const float> gate, std::span<const float> up, std::span<float> y) {
  for (std::size_t i = 0; i < gate.size(); ++i) y[i] = silu_of(gate[i]) * up[i];
}

}  // namespace stagecraft
