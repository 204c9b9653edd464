// Right: each square divided by n before it is added, from the end.
#include "operators/rms_norm.h"

#include <cmath>

namespace stagecraft {

void rms_norm(MatrixView<const float> x, std::span<const float> weight, float eps,
              MatrixView<float> y) {
  const float n = static_cast<float>(x.cols());
  for (std::size_t t = x.rows(); t-- > 0;) {
    float mean = 0.0f;
    for (std::size_t i = x.cols(); i-- > 0;) mean += x(t, i) * x(t, i) / n;
    const float scale = std::pow(mean + eps, -0.5f);
    for (std::size_t i = x.cols(); i-- > 0;) y(t, i) = scale * weight[i] * x(t, i);
  }
}

}  // namespace stagecraft
