#include "operators/rope.h"

#include "base/not_implemented.h"

namespace stagecraft {

// 6.2. The contract is in src/operators/rope.h.
void rope([[maybe_unused]] MatrixView<float> x, [[maybe_unused]] std::span<const float> inv_freq,
          [[maybe_unused]] std::size_t first_position) {
  // half = inv_freq.size(); a head has 2 * half columns; x has several heads side by side.
  // For each row t (the token at position first_position + t) and each i below half:
  //   1. angle = position * inv_freq[i]; its cosine and sine
  //   2. in every head, turn the pair (element i, element i + half) by that angle;
  //      keep the old element i until both new ones are computed
  NOT_IMPLEMENTED("stage 6.2: rope");
}

}  // namespace stagecraft
