#include "operators/attention.h"

#include "base/not_implemented.h"
#include "operators/matmul_transb.h"
#include "operators/softmax.h"

namespace stagecraft {
namespace {

// Write your own helper functions here. They are visible in this file only.

}  // namespace

// Parts 6.3 (a whole prompt) and 6.5 (groups, past, window) of the handout.
// The contract is in src/operators/attention.h.
void attention([[maybe_unused]] MatrixView<const float> q,
               [[maybe_unused]] MatrixView<const float> keys,
               [[maybe_unused]] MatrixView<const float> values,
               [[maybe_unused]] const AttentionShape& shape,
               [[maybe_unused]] MatrixView<float> probabilities,
               [[maybe_unused]] MatrixView<float> out) {
  NOT_IMPLEMENTED("stage 6.3: attention");
}

}  // namespace stagecraft
