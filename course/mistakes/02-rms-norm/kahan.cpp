// Right: a compensated sum.
#include "operators/rms_norm.h"

#include <cmath>

namespace stagecraft {

void rms_norm(MatrixView<const float> x, std::span<const float> weight, float eps,
              MatrixView<float> y) {
  const float n = static_cast<float>(x.cols());
  for (std::size_t t = 0; t < x.rows(); ++t) {
    float sum = 0.0f;
    float lost = 0.0f;
    for (const float value : x.row(t)) {
      const float term = value * value - lost;
      const float next = sum + term;
      lost = (next - sum) - term;
      sum = next;
    }
    const float root = std::sqrt(sum / n + eps);
    for (std::size_t i = 0; i < x.cols(); ++i) y(t, i) = x(t, i) / root * weight[i];
  }
}

}  // namespace stagecraft
