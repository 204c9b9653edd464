// This gives away stage 1: it is our answer to stages/01-silu/silu.cpp.
#include "operators/silu.h"

#include <cmath>

#include "operators/check.h"

namespace stagecraft {

void silu(std::span<const float> x, std::span<float> y) {
  check_size("silu", "y", x.size(), y.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    y[i] = x[i] / (1.0f + std::exp(-x[i]));
  }
}

}  // namespace stagecraft
