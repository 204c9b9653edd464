#include "operators/clamped_swiglu.h"

#include <algorithm>
#include <cmath>

#include "operators/check.h"

namespace stagecraft {

// In this order of arguments, NaN stays NaN in min and clamp.
void clamped_swiglu(std::span<const float> gate, std::span<const float> up, float alpha,
                    float limit, std::span<float> y) {
  check_size("clamped_swiglu", "up", gate.size(), up.size());
  check_size("clamped_swiglu", "y", gate.size(), y.size());
  for (std::size_t i = 0; i < gate.size(); ++i) {
    const float g = std::min(gate[i], limit), u = std::clamp(up[i], -limit, limit);
    y[i] = g / (1.0f + std::exp(-alpha * g)) * (u + 1.0f);
  }
}

}  // namespace stagecraft
