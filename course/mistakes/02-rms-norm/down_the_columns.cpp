// Mistake: the mean square of a column.
#include "operators/rms_norm.h"

#include <cmath>

namespace stagecraft {

void rms_norm(MatrixView<const float> x, std::span<const float> weight, float eps,
              MatrixView<float> y) {
  const float n = static_cast<float>(x.rows());
  for (std::size_t i = 0; i < x.cols(); ++i) {
    float sum = 0.0f;
    for (std::size_t t = 0; t < x.rows(); ++t) sum += x(t, i) * x(t, i);
    const float scale = 1.0f / std::sqrt(sum / n + eps);
    for (std::size_t t = 0; t < x.rows(); ++t) y(t, i) = weight[i] * x(t, i) * scale;
  }
}

}  // namespace stagecraft
