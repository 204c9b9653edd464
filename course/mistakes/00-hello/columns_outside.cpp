// Right: the loops the other way round.
#include "operators/add.h"

namespace stagecraft {

void add(MatrixView<const float> x, MatrixView<float> y) {
  for (std::size_t i = x.cols(); i-- > 0;) {
    for (std::size_t t = x.rows(); t-- > 0;) y(t, i) = x(t, i) + y(t, i);
  }
}

}  // namespace stagecraft
