#include "operators/geglu.h"

#include "operators/check.h"
#include "operators/gelu_tanh.h"

namespace stagecraft {

void geglu(std::span<const float> gate, std::span<const float> up, std::span<float> y) {
  check_size("geglu", "up", gate.size(), up.size());
  check_size("geglu", "y", gate.size(), y.size());
  for (std::size_t i = 0; i < gate.size(); ++i) y[i] = gelu_tanh(gate[i]) * up[i];
}

}  // namespace stagecraft
