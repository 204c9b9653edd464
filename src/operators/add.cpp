// This gives away stage 0: it is our answer to stages/00-hello/add.cpp.
#include "operators/add.h"

#include "operators/check.h"

namespace stagecraft {

void add(MatrixView<const float> x, MatrixView<float> y) {
  check_shape("add", "y", x.rows(), x.cols(), y);
  for (std::size_t t = 0; t < x.rows(); ++t) {
    for (std::size_t i = 0; i < x.cols(); ++i) y(t, i) += x(t, i);
  }
}

}  // namespace stagecraft
