// This gives away stage 7: it is our answer to stages/07-generation/forward.cpp.
#include "model/forward.h"

#include <algorithm>

#include "base/error.h"
#include "model/attention_block.h"
#include "model/linear.h"
#include "model/mlp.h"
#include "operators/check.h"
#include "operators/rms_norm.h"

namespace stagecraft {
namespace {

void check(const Config& config, std::span<const TokenId> tokens, const KvCache& cache,
           const Workspace& w, MatrixView<float> logits) {
  if (tokens.empty() || tokens.size() > w.max_rows) {
    throw Error("forward: expected 1 to {} tokens, found {}", w.max_rows, tokens.size());
  }
  const std::size_t context = std::min(cache.capacity(), w.max_context);
  const std::size_t room = context - std::min(context, cache.length());
  if (tokens.size() > room) {
    throw Error("forward: expected at most {} more tokens in the context, found {}", room,
                tokens.size());
  }
  for (const TokenId token : tokens) {
    if (token < 0 || static_cast<std::size_t>(token) >= config.vocab_size) {
      throw Error("forward: token id: expected 0 to {}, found {}", config.vocab_size - 1, token);
    }
  }
  check_shape("forward", "logits", std::min(logits.rows(), tokens.size()), config.vocab_size,
              logits);
}

}  // namespace

// Above each step: the expression in PyTorch (Hugging Face's LlamaForCausalLM).
void forward(const Model& model, std::span<const TokenId> tokens, KvCache& cache, Workspace& w,
             MatrixView<float> logits) {
  const Config& config = model.config;
  const Parameters& p = model.parameters;
  check(config, tokens, cache, w, logits);

  // x = embed_tokens(tokens)
  const auto x = w.hidden.top_rows(tokens.size());
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    std::ranges::copy(p.embedding.row(static_cast<std::size_t>(tokens[t])), x.row(t).begin());
  }

  // for layer in layers: x = layer(x)
  for (std::size_t i = 0; i < config.n_layers; ++i) {
    attention_block(config, p.layers[i].attention, i, x, cache, w);
    mlp(config, p.layers[i].mlp, x, w);
  }
  cache.advance(tokens.size());

  // logits = lm_head(norm(x[-n:]))
  if (logits.rows() == 0) return;
  const auto last = x.row_range(tokens.size() - logits.rows(), logits.rows());
  const auto normed = w.normed.top_rows(logits.rows());
  rms_norm(last, p.final_norm, config.norm_eps, normed);
  linear(p.lm_head, normed, logits, w.threads);
}

}  // namespace stagecraft
