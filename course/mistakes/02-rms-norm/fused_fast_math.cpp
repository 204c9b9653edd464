// Right: fused multiply-adds in blocks of eight; built with -ffast-math.
#include "operators/rms_norm.h"

#include <array>
#include <cmath>

namespace stagecraft {

void rms_norm(MatrixView<const float> x, std::span<const float> weight, float eps,
              MatrixView<float> y) {
  const float n = static_cast<float>(x.cols());
  for (std::size_t t = 0; t < x.rows(); ++t) {
    std::array<float, 8> sums{};
    for (std::size_t i = 0; i < x.cols(); ++i)
      sums[i % 8] = std::fma(x(t, i), x(t, i), sums[i % 8]);
    float sum = 0.0f;
    for (const float part : sums) sum += part;
    const float scale = 1.0f / std::sqrt(sum / n + eps);
    for (std::size_t i = 0; i < x.cols(); ++i) y(t, i) = weight[i] * scale * x(t, i);
  }
}

}  // namespace stagecraft
