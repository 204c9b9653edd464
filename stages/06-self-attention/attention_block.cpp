#include "model/attention_block.h"

#include "base/not_implemented.h"
#include "model/linear.h"
#include "operators/add.h"
#include "operators/attention.h"
#include "operators/rms_norm.h"
#include "operators/rope.h"

namespace stagecraft {
namespace {

// Given: applies RMSNorm to each head of x separately, in place. Call it only if config.qk_norm.
//   x       [seq_len, number of heads * head_dim]
//   weight  [head_dim], the same for all heads
[[maybe_unused]] void norm_heads(MatrixView<float> x, std::span<const float> weight, float eps) {
  for (std::size_t t = 0; t < x.rows(); ++t) {
    const MatrixView<float> heads(x.row(t).data(), x.cols() / weight.size(), weight.size());
    rms_norm(heads, weight, eps, heads);
  }
}

// Write your own helper functions here. They are visible in this file only.

}  // namespace

// Part 6.6 of the handout. The contract is in src/model/attention_block.h.
void attention_block([[maybe_unused]] const Config& config,
                     [[maybe_unused]] const AttentionParameters& p,
                     [[maybe_unused]] std::size_t layer, [[maybe_unused]] MatrixView<float> x,
                     [[maybe_unused]] KvCache& cache, [[maybe_unused]] Workspace& w) {
  NOT_IMPLEMENTED("stage 6.6: attention_block");
}

}  // namespace stagecraft
