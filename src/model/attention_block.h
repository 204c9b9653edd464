#pragma once

#include "model/kv_cache.h"
#include "model/parameters.h"
#include "model/workspace.h"

namespace stagecraft {

// The attention half of a layer, added to the residual stream:
//   x = x + o_proj(attention(rope(q), cache and rope(k), cache and v)),  q, k, v of rms_norm(x)
// If config.qk_norm is true, each head of q and of k goes through rms_norm before rope.
//
//   x      [seq_len, dim]  read and written: positions cache.length() and on;
//                          1 <= seq_len <= workspace.max_rows. In the model, x is in
//                          workspace.hidden; x must not overlap the other buffers
//   layer  the number of the layer, from 0: it selects the cache's layer and the window
//
// Appends seq_len keys and values to the cache, but does not advance it: the other layers need the
// same positions. Afterwards `probabilities` of the workspace holds the attention weights; trace
// and peek read them. Throws Error if the cache is full.
void attention_block(const Config& config, const AttentionParameters& parameters, std::size_t layer,
                     MatrixView<float> x, KvCache& cache, Workspace& workspace);

}  // namespace stagecraft
