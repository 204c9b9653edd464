// mistakes.json holds edits of this program, which is right.
#include "operators/softmax.h"

#include <algorithm>
#include <cmath>

namespace stagecraft {

void softmax(std::span<const float> x, std::span<float> y) {
  if (x.empty()) return;
  const float max = *std::max_element(x.begin(), x.end());
  float sum = 0.0f;
  for (std::size_t i = 0; i < x.size(); ++i) {
    y[i] = std::exp(x[i] - max);
    sum += y[i];
  }
  for (float& value : y) value /= sum;
}

}  // namespace stagecraft
