#include "model/workspace.h"

#include "model/rope_frequencies.h"

namespace stagecraft {

Workspace::Workspace(const Config& config, std::size_t rows, std::size_t context,
                     std::size_t n_threads)
    : max_rows(rows),
      max_context(context),
      inv_freq(rope_frequencies(config.rope, config.head_dim)),
      hidden(rows, config.dim),
      normed(rows, config.dim),
      q(rows, config.q_dim()),
      k(rows, config.kv_dim()),
      v(rows, config.kv_dim()),
      probabilities(config.n_heads * rows, context),
      attention_out(rows, config.q_dim()),
      gate(rows, config.ffn_dim),
      up(rows, config.ffn_dim),
      projected(rows, config.dim),
      threads(n_threads) {}

}  // namespace stagecraft
