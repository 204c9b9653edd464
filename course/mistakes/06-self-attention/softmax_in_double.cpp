// Right: softmax in double.
#include "operators/softmax.h"

#include <algorithm>
#include <cmath>

namespace stagecraft {

void softmax(std::span<const float> x, std::span<float> y) {
  if (x.empty()) return;
  const double max = *std::ranges::max_element(x);
  double sum = 0.0;
  for (const float value : x) sum += std::exp(value - max);
  for (std::size_t i = 0; i < x.size(); ++i) y[i] = static_cast<float>(std::exp(x[i] - max) / sum);
}

}  // namespace stagecraft
