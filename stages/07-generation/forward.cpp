#include "model/forward.h"

#include "base/not_implemented.h"
#include "model/attention_block.h"
#include "model/linear.h"
#include "model/mlp.h"
#include "operators/rms_norm.h"

namespace stagecraft {
namespace {

// Helpers of your own go here: nobody else can see them.

}  // namespace

// 7.1. The contract is in src/model/forward.h.
void forward([[maybe_unused]] const Model& model, [[maybe_unused]] std::span<const TokenId> tokens,
             [[maybe_unused]] KvCache& cache, [[maybe_unused]] Workspace& w,
             [[maybe_unused]] MatrixView<float> logits) {
  // model.config says how large everything is, model.parameters holds the weights.
  // 1. a token that is no row of the embedding is an Error (base/error.h): check before you touch
  //    anything
  // 2. x = the rows of parameters.embedding for these tokens, into w.hidden
  // 3. for each layer: attention_block, then mlp
  // 4. once, at the end: cache.advance by the number of tokens, also where no logits are wanted
  // 5. only for the last logits.rows() rows: rms_norm with parameters.final_norm, then the linear
  //    map parameters.lm_head into logits (there may be none to do)
  NOT_IMPLEMENTED("stage 7.1: forward");
}

}  // namespace stagecraft
