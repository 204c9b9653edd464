#include "operators/sigmoid.h"

#include <cmath>

#include "operators/check.h"

namespace stagecraft {

void sigmoid(std::span<const float> x, std::span<float> y) {
  check_size("sigmoid", "y", x.size(), y.size());
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = 1.0f / (1.0f + std::exp(-x[i]));
}

}  // namespace stagecraft
