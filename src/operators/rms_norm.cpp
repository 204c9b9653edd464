// This gives away stage 2: it is our answer to stages/02-rms-norm/rms_norm.cpp.
#include "operators/rms_norm.h"

#include <cmath>

#include "operators/check.h"

namespace stagecraft {

void rms_norm(MatrixView<const float> x, std::span<const float> weight, float eps,
              MatrixView<float> y) {
  check_size("rms_norm", "weight", x.cols(), weight.size());
  check_shape("rms_norm", "y", x.rows(), x.cols(), y);
  for (std::size_t t = 0; t < x.rows(); ++t) {
    const std::span<const float> in = x.row(t);
    const std::span<float> out = y.row(t);
    float sum_of_squares = 0.0f;
    for (const float value : in) sum_of_squares += value * value;
    const float mean_square = sum_of_squares / static_cast<float>(in.size());
    const float scale = 1.0f / std::sqrt(mean_square + eps);
    for (std::size_t i = 0; i < in.size(); ++i) out[i] = weight[i] * (in[i] * scale);
  }
}

}  // namespace stagecraft
