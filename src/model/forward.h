#pragma once

#include <span>

#include "model/kv_cache.h"
#include "model/model.h"
#include "model/workspace.h"

namespace stagecraft {

// One forward pass of the model over the next tokens of a sequence:
//   x = embedding[tokens]; for each layer: x = attention_block(x), x = mlp(x);
//   logits = lm_head(rms_norm(x))
//
//   tokens  [seq_len]  at positions cache.length() and on; 1 <= seq_len <= workspace.max_rows
//   cache              afterwards seq_len positions longer
//   logits  [n, vocab_size]  written: for each of the last n tokens, the scores of the token that
//                            follows it; n <= seq_len; 0 if only the cache is needed
//
// The bits do not depend on how a text is cut into passes. Throws Error if a token is not in [0,
// vocab_size), or if the cache has no room; then the cache is unchanged.
void forward(const Model& model, std::span<const TokenId> tokens, KvCache& cache,
             Workspace& workspace, MatrixView<float> logits);

}  // namespace stagecraft
