#include "operators/exact_gelu.h"

#include <cmath>

#include "operators/check.h"

namespace stagecraft {

// For x < 0, 1 + erf(x / sqrt(2)) would lose all digits; erfc keeps them.
void exact_gelu(std::span<const float> x, std::span<float> y) {
  check_size("exact_gelu", "y", x.size(), y.size());
  constexpr float kRootOfHalf = 0.7071067812f;
  for (std::size_t i = 0; i < x.size(); ++i) {
    y[i] = 0.5f * x[i] * std::erfc(-x[i] * kRootOfHalf);
  }
}

void gelu_tanh(std::span<const float> x, std::span<float> y) {
  check_size("gelu_tanh", "y", x.size(), y.size());
  constexpr float kRootOf2ByPi = 0.7978845608f;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const float inner = kRootOf2ByPi * (x[i] + 0.044715f * x[i] * x[i] * x[i]);
    y[i] = 0.5f * x[i] * (1.0f + std::tanh(inner));
  }
}

}  // namespace stagecraft
