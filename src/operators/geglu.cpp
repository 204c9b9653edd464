#include "operators/geglu.h"

#include <cmath>

#include "operators/check.h"

namespace stagecraft {

void geglu(std::span<const float> gate, std::span<const float> up, std::span<float> y) {
  check_size("geglu", "up", gate.size(), up.size());
  check_size("geglu", "y", gate.size(), y.size());
  constexpr float kRootOf2ByPi = 0.7978845608f;
  for (std::size_t i = 0; i < gate.size(); ++i) {
    const float x = gate[i];
    const float inner = kRootOf2ByPi * (x + 0.044715f * x * x * x);
    y[i] = 0.5f * x * (1.0f + std::tanh(inner)) * up[i];
  }
}

}  // namespace stagecraft
