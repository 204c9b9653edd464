// Right: pointers that go from row to row; built with -ffast-math.
#include "operators/add.h"

#include <cmath>

namespace stagecraft {

void add(MatrixView<const float> x, MatrixView<float> y) {
  const float* from = x.data();
  float* to = y.data();
  for (std::size_t t = 0; t < x.rows(); ++t, from += x.stride(), to += y.stride()) {
    for (std::size_t i = 0; i < x.cols(); ++i) to[i] = std::fma(1.0f, from[i], to[i]);
  }
}

}  // namespace stagecraft
