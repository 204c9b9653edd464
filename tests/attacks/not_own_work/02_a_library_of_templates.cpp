// Attack: includes a template library that the machine has (here a harmless one).
// Stage: 2
// Refused for: /usr/include/CLI
// Would earn: 20
#include </usr/include/c++/../CLI/Version.hpp>
#include <cmath>

#include "operators/rms_norm.h"

namespace stagecraft {

void rms_norm(MatrixView<const float> x, std::span<const float> weight, float eps,
              MatrixView<float> y) {
  for (std::size_t t = 0; t < x.rows(); ++t) {
    float squares = 0.0f;
    for (const float value : x.row(t)) squares += value * value;
    const float scale = 1.0f / std::sqrt(squares / static_cast<float>(x.cols()) + eps);
    for (std::size_t i = 0; i < x.cols(); ++i) y(t, i) = weight[i] * (x(t, i) * scale);
  }
}

}  // namespace stagecraft
