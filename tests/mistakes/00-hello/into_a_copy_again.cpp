// Mistake: the sum goes into a vector that nobody sees.
#include "operators/add.h"

#include <vector>

namespace stagecraft {

void add(MatrixView<const float> x, MatrixView<float> y) {
  for (std::size_t t = 0; t < x.rows(); ++t) {
    const std::span<float> row = y.row(t);
    std::vector<float> sum(row.begin(), row.end());
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += x(t, i);
  }
}

}  // namespace stagecraft
