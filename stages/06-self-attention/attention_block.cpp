#include "model/attention_block.h"

#include "base/not_implemented.h"
#include "model/linear.h"
#include "operators/add.h"
#include "operators/attention.h"
#include "operators/rms_norm.h"
#include "operators/rope.h"

namespace stagecraft {
namespace {

// Helpers of your own go here: nobody else can see them.

}  // namespace

// 6.5. The contract is in src/model/attention_block.h.
void attention_block([[maybe_unused]] const Config& config,
                     [[maybe_unused]] const AttentionParameters& p,
                     [[maybe_unused]] std::size_t layer, [[maybe_unused]] MatrixView<float> x,
                     [[maybe_unused]] KvCache& cache, [[maybe_unused]] Workspace& w) {
  // Room to work in: w.normed, w.q, w.k, w.v, w.attention_out, w.projected (top_rows of each, as
  // many as x has), and w.probabilities_for(n_heads, seq_len, kv_len).
  //
  // 1. rms_norm of x, with p.norm
  // 2. q, k, v: three linear maps of that
  // 3. only where config.qk_norm: rms_norm of every head of q and of k on its own, with p.q_norm
  //    and p.k_norm (models of the Qwen3 family; leave it out at first)
  // 4. rope of q and of k, from the position that comes after those in the cache
  // 5. append k and v to the cache: cache.append(layer, k, v)
  // 6. attention of q over all that this layer's cache then holds (cache.keys, cache.values)
  // 7. the linear map p.o of that, added to x
  //
  // After a step, w.probe("q", q) shows the gate what you have. The names: attn_norm, q, k, v,
  // q_norm, k_norm, q_rope, k_rope, attn_probs, attn_out, attn_proj, attn_residual.
  NOT_IMPLEMENTED("stage 6.5: attention_block");
}

}  // namespace stagecraft
