#include "operators/attention.h"

#include "base/not_implemented.h"
#include "operators/matmul_transb.h"
#include "operators/softmax.h"

namespace stagecraft {
namespace {

// Helpers of your own go here: nobody else can see them.

}  // namespace

// 6.3 and 6.4. The contract is in src/operators/attention.h. Write it for a whole prompt first
// (as many keys as queries, one key head for each query head), then for the rest.
void attention([[maybe_unused]] MatrixView<const float> q,
               [[maybe_unused]] MatrixView<const float> keys,
               [[maybe_unused]] MatrixView<const float> values,
               [[maybe_unused]] const AttentionShape& shape,
               [[maybe_unused]] MatrixView<float> probabilities,
               [[maybe_unused]] MatrixView<float> out) {
  // For each query head:
  //   1. which key and value head does it share with its neighbours?
  //      (x.col_range(first, count) is a view of one head)
  //   2. scores: its queries with those keys, divided by sqrt(head_dim)
  //   3. for each query i: which keys may it see? (it stands behind all that are only in the cache)
  //      softmax over those; the probability of every other key is 0
  //   4. out: the sum of the value rows, each times its probability
  NOT_IMPLEMENTED("stage 6.3: attention");
}

}  // namespace stagecraft
