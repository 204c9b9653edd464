// Mistake: one mean square for all rows.
#include "operators/rms_norm.h"

#include <cmath>

namespace stagecraft {

void rms_norm(MatrixView<const float> x, std::span<const float> weight, float eps,
              MatrixView<float> y) {
  float sum = 0.0f;
  for (std::size_t t = 0; t < x.rows(); ++t) {
    for (std::size_t i = 0; i < x.cols(); ++i) sum += x(t, i) * x(t, i);
  }
  const float scale = 1.0f / std::sqrt(sum / static_cast<float>(x.rows() * x.cols()) + eps);
  for (std::size_t t = 0; t < x.rows(); ++t) {
    for (std::size_t i = 0; i < x.cols(); ++i) y(t, i) = weight[i] * x(t, i) * scale;
  }
}

}  // namespace stagecraft
