// This gives away stage 6: it is our answer to stages/06-self-attention/rope.cpp.
#include "operators/rope.h"

#include <cmath>

#include "base/error.h"

namespace stagecraft {

void rope(MatrixView<float> x, std::span<const float> inv_freq, std::size_t first_position) {
  const std::size_t half = inv_freq.size();
  const std::size_t head_dim = 2 * half;
  if (head_dim == 0 || x.cols() % head_dim != 0) {
    throw Error("rope: x: expected a multiple of head_dim {} columns, found {}", head_dim,
                x.cols());
  }
  for (std::size_t t = 0; t < x.rows(); ++t) {
    const std::span<float> row = x.row(t);
    const auto position = static_cast<float>(first_position + t);
    for (std::size_t i = 0; i < half; ++i) {
      const float angle = position * inv_freq[i];
      const float cos = std::cos(angle);
      const float sin = std::sin(angle);
      for (std::size_t head = 0; head < row.size(); head += head_dim) {
        const float a = row[head + i];
        const float b = row[head + i + half];
        row[head + i] = a * cos - b * sin;
        row[head + i + half] = b * cos + a * sin;
      }
    }
  }
}

}  // namespace stagecraft
