// Mistake: divides by root plus eps.
#include "operators/rms_norm.h"

#include <cmath>

namespace stagecraft {

void rms_norm(MatrixView<const float> x, std::span<const float> weight, float eps,
              MatrixView<float> y) {
  for (std::size_t t = 0; t < x.rows(); ++t) {
    double mean = 0.0;
    for (const double value : x.row(t)) mean += value * value / static_cast<double>(x.cols());
    for (std::size_t i = 0; i < x.cols(); ++i) {
      y(t, i) = static_cast<float>(x(t, i) / (std::sqrt(mean) + eps)) * weight[i];
    }
  }
}

}  // namespace stagecraft
