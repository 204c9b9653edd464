// Mistake: the arguments of a helper are exchanged.
#include "operators/silu.h"

#include <cmath>

#include "operators/swiglu.h"

namespace stagecraft {
namespace {

float gated(float up, float gate) { return gate * up / (1.0f + std::exp(-gate)); }

}  // namespace

void silu(std::span<const float> x, std::span<float> y) {
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = gated(1.0f, x[i]);
}

void swiglu(std::span<const float> gate, std::span<const float> up, std::span<float> y) {
  for (std::size_t i = 0; i < gate.size(); ++i) y[i] = gated(gate[i], up[i]);
}

}  // namespace stagecraft
