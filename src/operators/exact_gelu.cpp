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

}  // namespace stagecraft
