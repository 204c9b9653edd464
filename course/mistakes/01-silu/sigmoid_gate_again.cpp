// Mistake: a sigmoid function where silu was meant.
#include "operators/silu.h"

#include <cmath>

#include "operators/swiglu.h"

namespace stagecraft {
namespace {

float sigmoid(float x) {
  const double e = std::exp(-std::fabs(static_cast<double>(x)));
  return static_cast<float>((x < 0.0f ? e : 1.0) / (1.0 + e));
}

}  // namespace

void silu(std::span<const float> x, std::span<float> y) {
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = x[i] * sigmoid(x[i]);
}

void swiglu(std::span<const float> gate, std::span<const float> up, std::span<float> y) {
  for (std::size_t i = 0; i < gate.size(); ++i) y[i] = sigmoid(gate[i]) * up[i];
}

}  // namespace stagecraft
