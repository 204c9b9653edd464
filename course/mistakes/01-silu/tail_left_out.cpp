// Mistake: four at a time, and what is left over is not computed.
#include "operators/silu.h"

#include <cmath>

#include "operators/swiglu.h"

namespace stagecraft {
namespace {

float silu_of(float x) { return x / (1.0f + std::exp(-x)); }

}  // namespace

void silu(std::span<const float> x, std::span<float> y) {
  for (std::size_t i = 0; i + 4 <= x.size(); i += 4) {
    for (std::size_t j = i; j < i + 4; ++j) y[j] = silu_of(x[j]);
  }
}

void swiglu(std::span<const float> gate, std::span<const float> up, std::span<float> y) {
  for (std::size_t i = 0; i + 4 <= gate.size(); i += 4) {
    for (std::size_t j = i; j < i + 4; ++j) y[j] = silu_of(gate[j]) * up[j];
  }
}

}  // namespace stagecraft
