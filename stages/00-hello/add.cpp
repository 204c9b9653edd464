#include "operators/add.h"

#include "base/not_implemented.h"

namespace stagecraft {

// The contract (shapes, what may overlap) is in src/operators/add.h.
void add([[maybe_unused]] MatrixView<const float> x, [[maybe_unused]] MatrixView<float> y) {
  // For every row t and every column i:  y(t, i) += x(t, i)
  NOT_IMPLEMENTED("stage 0: add");
}

}  // namespace stagecraft
