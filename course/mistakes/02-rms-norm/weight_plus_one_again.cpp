// Mistake: weight times the norm, and the norm once more.
#include "operators/rms_norm.h"

#include <cmath>
#include <numeric>

namespace stagecraft {

void rms_norm(MatrixView<const float> x, std::span<const float> weight, float eps,
              MatrixView<float> y) {
  for (std::size_t t = 0; t < x.rows(); ++t) {
    const float norm =
        std::sqrt(std::inner_product(x.row(t).begin(), x.row(t).end(), x.row(t).begin(), 0.0f) /
                      static_cast<float>(x.cols()) +
                  eps);
    for (std::size_t i = 0; i < x.cols(); ++i) {
      const float normed = x(t, i) / norm;
      y(t, i) = normed + weight[i] * normed;
    }
  }
}

}  // namespace stagecraft
