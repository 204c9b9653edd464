// Mistake: every row of y gets the first row of x.
#include "operators/add.h"

namespace stagecraft {

void add(MatrixView<const float> x, MatrixView<float> y) {
  for (std::size_t t = 0; t < x.rows(); ++t) {
    for (std::size_t i = 0; i < x.cols(); ++i) y(t, i) += x(0, i);
  }
}

}  // namespace stagecraft
