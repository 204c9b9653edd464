// Mistake: rows are taken to lie side by side.
#include "operators/rms_norm.h"

#include <cmath>

namespace stagecraft {

void rms_norm(MatrixView<const float> x, std::span<const float> weight, float eps,
              MatrixView<float> y) {
  const std::size_t n = x.cols();
  for (std::size_t t = 0; t < x.rows(); ++t) {
    const float* in = x.data() + t * n;
    float* out = y.data() + t * n;
    float sum = 0.0f;
    for (std::size_t i = 0; i < n; ++i) sum += in[i] * in[i];
    const float scale = 1.0f / std::sqrt(sum / static_cast<float>(n) + eps);
    for (std::size_t i = 0; i < n; ++i) out[i] = weight[i] * in[i] * scale;
  }
}

}  // namespace stagecraft
