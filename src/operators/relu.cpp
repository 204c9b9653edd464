#include "operators/relu.h"

#include "operators/check.h"

namespace stagecraft {

void relu(std::span<const float> x, std::span<float> y) {
  check_size("relu", "y", x.size(), y.size());
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = x[i] < 0.0f ? 0.0f : x[i];
}

}  // namespace stagecraft
