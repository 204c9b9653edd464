// Mistake: LayerNorm: the mean is subtracted.
#include "operators/rms_norm.h"

#include <cmath>

namespace stagecraft {

void rms_norm(MatrixView<const float> x, std::span<const float> weight, float eps,
              MatrixView<float> y) {
  const float n = static_cast<float>(x.cols());
  for (std::size_t t = 0; t < x.rows(); ++t) {
    float mean = 0.0f;
    for (const float value : x.row(t)) mean += value / n;
    float variance = 0.0f;
    for (const float value : x.row(t)) variance += (value - mean) * (value - mean) / n;
    const float scale = 1.0f / std::sqrt(variance + eps);
    for (std::size_t i = 0; i < x.cols(); ++i) y(t, i) = weight[i] * (x(t, i) - mean) * scale;
  }
}

}  // namespace stagecraft
