#include "operators/soft_cap.h"

#include <cmath>

namespace stagecraft {

void soft_cap(std::span<float> x, float cap) {
  for (float& value : x) value = cap * std::tanh(value / cap);
}

}  // namespace stagecraft
