#include "operators/layer_norm.h"

#include <cmath>

#include "operators/check.h"

namespace stagecraft {

void layer_norm(MatrixView<const float> x, std::span<const float> weight,
                std::span<const float> bias, float eps, MatrixView<float> y) {
  check_size("layer_norm", "weight", x.cols(), weight.size());
  check_size("layer_norm", "bias", x.cols(), bias.size());
  check_shape("layer_norm", "y", x.rows(), x.cols(), y);
  const auto dim = static_cast<float>(x.cols());
  for (std::size_t t = 0; t < x.rows(); ++t) {
    const std::span<const float> in = x.row(t);
    const std::span<float> out = y.row(t);
    float sum = 0.0f;
    for (const float value : in) sum += value;
    const float mean = sum / dim;
    float sum_of_squares = 0.0f;
    for (const float value : in) sum_of_squares += (value - mean) * (value - mean);
    const float scale = 1.0f / std::sqrt(sum_of_squares / dim + eps);
    for (std::size_t i = 0; i < in.size(); ++i) {
      out[i] = weight[i] * ((in[i] - mean) * scale) + bias[i];
    }
  }
}

}  // namespace stagecraft
