// Right: one token after the other through all layers.
#include "model/forward.h"

#include <algorithm>

#include "base/error.h"
#include "model/attention_block.h"
#include "model/linear.h"
#include "model/mlp.h"
#include "operators/rms_norm.h"

namespace stagecraft {

void forward(const Model& model, std::span<const TokenId> tokens, KvCache& cache, Workspace& w,
             MatrixView<float> logits) {
  const Config& config = model.config;
  const Parameters& p = model.parameters;
  const auto x = w.hidden.top_rows(tokens.size());
  if (tokens.size() > cache.capacity() - cache.length()) throw Error("forward: no room");
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    const auto id = static_cast<std::size_t>(tokens[t]);
    if (id >= config.vocab_size) throw Error("forward: no row for token {}", tokens[t]);
    const auto row = p.embedding.row(id);
    std::copy(row.begin(), row.end(), x.row(t).begin());
  }
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    const auto row = x.row_range(t, 1);
    for (std::size_t i = 0; i < config.n_layers; ++i) {
      attention_block(config, p.layers[i].attention, i, row, cache, w);
      mlp(config, p.layers[i].mlp, row, w);
    }
    cache.advance(1);
  }
  if (logits.rows() == 0) return;
  const auto last = x.row_range(tokens.size() - logits.rows(), logits.rows());
  const auto normed = w.normed.top_rows(logits.rows());
  rms_norm(last, p.final_norm, config.norm_eps, normed);
  linear(p.lm_head, normed, logits, w.threads);
}

}  // namespace stagecraft
