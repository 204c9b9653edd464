#include "operators/neighbour_rope.h"

#include <cmath>

#include "base/error.h"

namespace stagecraft {

void neighbour_rope(MatrixView<float> x, std::span<const float> inv_freq,
                    std::size_t first_position) {
  const std::size_t head_dim = 2 * inv_freq.size();
  if (head_dim == 0 || x.cols() % head_dim != 0) {
    throw Error("neighbour_rope: x: expected a multiple of head_dim {} columns, found {}", head_dim,
                x.cols());
  }
  for (std::size_t t = 0; t < x.rows(); ++t) {
    const std::span<float> row = x.row(t);
    const auto position = static_cast<float>(first_position + t);
    for (std::size_t i = 0; i < inv_freq.size(); ++i) {
      const float angle = position * inv_freq[i];
      const float cos = std::cos(angle);
      const float sin = std::sin(angle);
      for (std::size_t at = 2 * i; at < row.size(); at += head_dim) {
        const float a = row[at];
        const float b = row[at + 1];
        row[at] = a * cos - b * sin;
        row[at + 1] = b * cos + a * sin;
      }
    }
  }
}

}  // namespace stagecraft
