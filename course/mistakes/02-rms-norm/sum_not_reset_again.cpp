// Mistake: the running mean of all rows so far.
#include "operators/rms_norm.h"

#include <cmath>
#include <numeric>

namespace stagecraft {

void rms_norm(MatrixView<const float> x, std::span<const float> weight, float eps,
              MatrixView<float> y) {
  double squares = 0.0;
  for (std::size_t t = 0; t < x.rows(); ++t) {
    squares = std::accumulate(x.row(t).begin(), x.row(t).end(), squares,
                              [](double so_far, double value) { return so_far + value * value; });
    const double root = std::sqrt(squares / static_cast<double>(x.cols()) + eps);
    for (std::size_t i = 0; i < x.cols(); ++i) {
      y(t, i) = static_cast<float>(weight[i] * (x(t, i) / root));
    }
  }
}

}  // namespace stagecraft
