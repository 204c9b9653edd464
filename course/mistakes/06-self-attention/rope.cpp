// mistakes.json holds edits of this program, which is right.
#include "operators/rope.h"

#include <cmath>

namespace stagecraft {

void rope(MatrixView<float> x, std::span<const float> inv_freq, std::size_t first_position) {
  const std::size_t half = inv_freq.size();
  for (std::size_t t = 0; t < x.rows(); ++t) {
    const std::span<float> row = x.row(t);
    for (std::size_t i = 0; i < half; ++i) {
      const float angle = static_cast<float>(first_position + t) * inv_freq[i];
      const float cos = std::cos(angle);
      const float sin = std::sin(angle);
      for (std::size_t head = 0; head < row.size(); head += 2 * half) {
        const float a = row[head + i];
        const float b = row[head + i + half];
        row[head + i] = a * cos - b * sin;
        row[head + i + half] = b * cos + a * sin;
      }
    }
  }
}

}  // namespace stagecraft
