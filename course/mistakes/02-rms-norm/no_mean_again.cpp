// Mistake: the norm of the row as a vector.
#include "operators/rms_norm.h"

#include <cmath>
#include <numeric>

namespace stagecraft {

void rms_norm(MatrixView<const float> x, std::span<const float> weight, float eps,
              MatrixView<float> y) {
  for (std::size_t t = 0; t < x.rows(); ++t) {
    const auto row = x.row(t);
    const double squares = std::inner_product(row.begin(), row.end(), row.begin(), 0.0);
    const double length = std::sqrt(squares + eps);
    for (std::size_t i = 0; i < row.size(); ++i) {
      y(t, i) = static_cast<float>(row[i] / length * weight[i]);
    }
  }
}

}  // namespace stagecraft
