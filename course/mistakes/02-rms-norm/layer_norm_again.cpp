// Mistake: the variance by E[x^2] - E[x]^2.
#include "operators/rms_norm.h"

#include <cmath>

namespace stagecraft {

void rms_norm(MatrixView<const float> x, std::span<const float> weight, float eps,
              MatrixView<float> y) {
  for (std::size_t t = 0; t < x.rows(); ++t) {
    double sum = 0.0;
    double squares = 0.0;
    for (const double value : x.row(t)) {
      sum += value;
      squares += value * value;
    }
    const double n = static_cast<double>(x.cols());
    const double mean = sum / n;
    const double deviation = std::sqrt(squares / n - mean * mean + eps);
    for (std::size_t i = 0; i < x.cols(); ++i) {
      y(t, i) = static_cast<float>((x(t, i) - mean) / deviation * weight[i]);
    }
  }
}

}  // namespace stagecraft
