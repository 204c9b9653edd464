#include "model/forward.h"

#include "base/error.h"
#include "base/not_implemented.h"
#include "model/attention_block.h"
#include "model/linear.h"
#include "model/mlp.h"
#include "operators/rms_norm.h"

namespace stagecraft {
namespace {

// Write your own helper functions here. They are visible in this file only.

}  // namespace

// 7.1. The contract is in src/model/forward.h.
void forward([[maybe_unused]] const Model& model, [[maybe_unused]] std::span<const TokenId> tokens,
             [[maybe_unused]] KvCache& cache, [[maybe_unused]] Workspace& w,
             [[maybe_unused]] MatrixView<float> logits) {
  NOT_IMPLEMENTED("stage 7.1: forward");
}

}  // namespace stagecraft
