#include "operators/rope.h"

#include "base/not_implemented.h"

namespace stagecraft {

// Part 6.4 of the handout. The contract is in src/operators/rope.h.
void rope([[maybe_unused]] MatrixView<float> x, [[maybe_unused]] std::span<const float> inv_freq,
          [[maybe_unused]] std::size_t first_position) {
  NOT_IMPLEMENTED("stage 6.4: rope");
}

}  // namespace stagecraft
