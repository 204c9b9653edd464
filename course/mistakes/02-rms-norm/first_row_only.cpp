// Mistake: only the first token is treated.
#include "operators/rms_norm.h"

#include <cmath>

namespace stagecraft {

void rms_norm(MatrixView<const float> x, std::span<const float> weight, float eps,
              MatrixView<float> y) {
  if (x.rows() == 0) return;
  float sum = 0.0f;
  for (const float value : x.row(0)) sum += value * value;
  const float scale = 1.0f / std::sqrt(sum / static_cast<float>(x.cols()) + eps);
  for (std::size_t i = 0; i < x.cols(); ++i) y(0, i) = weight[i] * x(0, i) * scale;
}

}  // namespace stagecraft
