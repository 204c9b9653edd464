// Mistake: one index counts rows and columns.
#include "operators/add.h"

#include <algorithm>

namespace stagecraft {

void add(MatrixView<const float> x, MatrixView<float> y) {
  for (std::size_t t = 0; t < std::min(x.rows(), x.cols()); ++t) y(t, t) += x(t, t);
}

}  // namespace stagecraft
