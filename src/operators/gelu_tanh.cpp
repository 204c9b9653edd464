#include "operators/gelu_tanh.h"

#include <cmath>

#include "operators/check.h"

namespace stagecraft {
namespace {

float gelu_tanh(float x) {
  constexpr float kRootOf2ByPi = 0.7978845608f;
  const float inner = kRootOf2ByPi * (x + 0.044715f * x * x * x);
  return 0.5f * x * (1.0f + std::tanh(inner));
}

}  // namespace

void gelu_tanh(std::span<const float> x, std::span<float> y) {
  check_size("gelu_tanh", "y", x.size(), y.size());
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = gelu_tanh(x[i]);
}

}  // namespace stagecraft
