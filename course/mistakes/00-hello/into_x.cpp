// Mistake: x and y are exchanged: x gets the sum.
#include "operators/add.h"

namespace stagecraft {

void add(MatrixView<const float> x, MatrixView<float> y) {
  const MatrixView<float> sum(const_cast<float*>(x.data()), x.rows(), x.cols(), x.stride());
  for (std::size_t t = 0; t < x.rows(); ++t) {
    for (std::size_t i = 0; i < x.cols(); ++i) sum(t, i) += y(t, i);
  }
}

}  // namespace stagecraft
