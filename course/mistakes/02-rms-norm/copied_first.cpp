// Right: the row is copied, so that y may be anything.
#include "operators/rms_norm.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace stagecraft {

void rms_norm(MatrixView<const float> x, std::span<const float> weight, float eps,
              MatrixView<float> y) {
  std::vector<float> row(x.cols());
  for (std::size_t t = 0; t < x.rows(); ++t) {
    std::ranges::copy(x.row(t), row.begin());
    const float squares = std::inner_product(row.begin(), row.end(), row.begin(), 0.0f);
    const float scale = 1.0f / std::sqrt(squares / static_cast<float>(row.size()) + eps);
    std::ranges::transform(row, weight, y.row(t).begin(),
                           [&](float value, float w) { return w * (value * scale); });
  }
}

}  // namespace stagecraft
