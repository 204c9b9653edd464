// This gives away stage 6: it is our answer to stages/06-self-attention/attention_block.cpp.
#include "model/attention_block.h"

#include "model/linear.h"
#include "operators/add.h"
#include "operators/attention.h"
#include "operators/rms_norm.h"
#include "operators/rope.h"

namespace stagecraft {
namespace {

// RMSNorm of every head on its own, in place: each head becomes a row.
void norm_heads(MatrixView<float> x, std::span<const float> weight, float eps) {
  for (std::size_t t = 0; t < x.rows(); ++t) {
    const MatrixView<float> heads(x.row(t).data(), x.cols() / weight.size(), weight.size());
    rms_norm(heads, weight, eps, heads);
  }
}

}  // namespace

void attention_block(const Config& config, const AttentionParameters& p, std::size_t layer,
                     MatrixView<float> x, KvCache& cache, Workspace& w) {
  const std::size_t seq_len = x.rows();
  const std::size_t past = cache.length();
  const auto normed = w.normed.top_rows(seq_len);
  const auto q = w.q.top_rows(seq_len);
  const auto k = w.k.top_rows(seq_len);
  const auto v = w.v.top_rows(seq_len);

  rms_norm(x, p.norm, config.norm_eps, normed);
  w.probe("attn_norm", normed);
  linear(p.q, normed, q, w.threads);
  w.probe("q", q);
  linear(p.k, normed, k, w.threads);
  w.probe("k", k);
  linear(p.v, normed, v, w.threads);
  w.probe("v", v);
  if (config.qk_norm) {
    norm_heads(q, p.q_norm, config.norm_eps);
    w.probe("q_norm", q);
    norm_heads(k, p.k_norm, config.norm_eps);
    w.probe("k_norm", k);
  }

  rope(q, w.inv_freq, past);
  w.probe("q_rope", q);
  rope(k, w.inv_freq, past);
  w.probe("k_rope", k);
  cache.append(layer, k, v);

  const std::size_t kv_len = past + seq_len;
  const AttentionShape shape{config.n_heads, config.n_kv_heads, config.head_dim,
                             config.windows[layer]};
  const auto probabilities = w.probabilities_for(config.n_heads, seq_len, kv_len);
  const auto out = w.attention_out.top_rows(seq_len);
  attention(q, cache.keys(layer, kv_len), cache.values(layer, kv_len), shape, probabilities, out);
  w.probe("attn_probs", probabilities);
  w.probe("attn_out", out);

  const auto projected = w.projected.top_rows(seq_len);
  linear(p.o, out, projected, w.threads);
  w.probe("attn_proj", projected);
  add(projected, x);
  w.probe("attn_residual", x);
}

}  // namespace stagecraft
