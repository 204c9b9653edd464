// Mistake: only the first token is treated.
#include "operators/add.h"

namespace stagecraft {

void add(MatrixView<const float> x, MatrixView<float> y) {
  if (x.rows() == 0) return;
  for (std::size_t i = 0; i < x.cols(); ++i) y(0, i) += x(0, i);
}

}  // namespace stagecraft
