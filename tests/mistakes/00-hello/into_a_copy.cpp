// Mistake: the sum goes into a copy of the element.
#include "operators/add.h"

namespace stagecraft {

void add(MatrixView<const float> x, MatrixView<float> y) {
  for (std::size_t t = 0; t < x.rows(); ++t) {
    for (std::size_t i = 0; i < x.cols(); ++i) {
      [[maybe_unused]] float element = y(t, i);
      element += x(t, i);
    }
  }
}

}  // namespace stagecraft
