// Mistake: no maximum is subtracted.
#include "operators/softmax.h"

#include <cmath>

namespace stagecraft {

void softmax(std::span<const float> x, std::span<float> y) {
  float sum = 0.0f;
  for (std::size_t i = 0; i < x.size(); ++i) {
    y[i] = std::exp(x[i]);
    sum += y[i];
  }
  for (float& value : y) value /= sum;
}

}  // namespace stagecraft
