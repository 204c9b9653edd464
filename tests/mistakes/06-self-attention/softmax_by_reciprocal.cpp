// Right: softmax backwards, by the reciprocal of the sum.
#include "operators/softmax.h"

#include <algorithm>
#include <cmath>

namespace stagecraft {

void softmax(std::span<const float> x, std::span<float> y) {
  if (x.empty()) return;
  const float max = *std::max_element(x.begin(), x.end());
  float sum = 0.0f;
  for (std::size_t i = x.size(); i-- > 0;) {
    y[i] = std::exp(x[i] - max);
    sum += y[i];
  }
  const float scale = 1.0f / sum;
  for (std::size_t i = y.size(); i-- > 0;) y[i] *= scale;
}

}  // namespace stagecraft
