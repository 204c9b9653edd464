#include "operators/short_conv.h"

#include <algorithm>

#include "base/error.h"
#include "operators/check.h"

namespace stagecraft {

void short_conv(MatrixView<const float> x, MatrixView<const float> taps,
                std::span<const float> bias, MatrixView<float> state, MatrixView<float> y) {
  const std::size_t width = x.cols(), n_taps = taps.cols();
  if (n_taps == 0) throw Error("short_conv: taps: expected 1 or more per column, found 0");
  const std::size_t past = n_taps - 1;
  check_shape("short_conv", "taps", width, n_taps, taps);
  check_shape("short_conv", "state", past, width, state);
  check_shape("short_conv", "y", x.rows(), width, y);
  if (!bias.empty()) check_size("short_conv", "bias", width, bias.size());
  // Row i of the rows of `state` followed by the rows of x.
  const auto row = [&](std::size_t i) -> std::span<const float> {
    return i < past ? state.row(i) : x.row(i - past);
  };
  for (std::size_t t = 0; t < x.rows(); ++t) {
    const std::span<float> out = y.row(t);
    for (std::size_t c = 0; c < width; ++c) {
      float sum = bias.empty() ? 0.0f : bias[c];
      for (std::size_t j = 0; j < n_taps; ++j) sum += taps(c, j) * row(t + j)[c];
      out[c] = sum;
    }
  }
  for (std::size_t i = 0; i < past; ++i) std::ranges::copy(row(x.rows() + i), state.row(i).begin());
}

}  // namespace stagecraft
