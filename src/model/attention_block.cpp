// This gives away stage 6: it is our answer to stages/06-self-attention/attention_block.cpp.
#include "model/attention_block.h"

#include "model/linear.h"
#include "operators/add.h"
#include "operators/attention.h"
#include "operators/rms_norm.h"
#include "operators/rope.h"

namespace stagecraft {
namespace {

// RMSNorm of every head by itself, in place: each head is treated as a row.
void norm_heads(MatrixView<float> x, std::span<const float> weight, float eps) {
  for (std::size_t t = 0; t < x.rows(); ++t) {
    const MatrixView<float> heads(x.row(t).data(), x.cols() / weight.size(), weight.size());
    rms_norm(heads, weight, eps, heads);
  }
}

}  // namespace

// Above each step: the expression in PyTorch (Hugging Face's LlamaAttention and Qwen3Attention,
// with the norm before it and the residual after it).
void attention_block(const Config& config, const AttentionParameters& p, std::size_t layer,
                     MatrixView<float> x, KvCache& cache, Workspace& w) {
  const std::size_t seq_len = x.rows();
  const std::size_t past = cache.length();
  const std::size_t kv_len = past + seq_len;
  const auto normed = w.normed.top_rows(seq_len);
  const auto q = w.q.top_rows(seq_len);
  const auto k = w.k.top_rows(seq_len);
  const auto v = w.v.top_rows(seq_len);
  const auto out = w.attention_out.top_rows(seq_len);
  const auto projected = w.projected.top_rows(seq_len);

  // normed = input_layernorm(x)
  rms_norm(x, p.norm, config.norm_eps, normed);

  // q, k, v = q_proj(normed), k_proj(normed), v_proj(normed)
  linear(p.q, normed, q, w.threads);
  linear(p.k, normed, k, w.threads);
  linear(p.v, normed, v, w.threads);

  // q, k = q_norm(q), k_norm(k)                             (Qwen3; one norm per head)
  if (config.qk_norm) {
    norm_heads(q, p.q_norm, config.norm_eps);
    norm_heads(k, p.k_norm, config.norm_eps);
  }

  // q, k = apply_rotary_pos_emb(q, k, cos, sin)             (positions past, past + 1, ...)
  rope(q, w.inv_freq, past);
  rope(k, w.inv_freq, past);

  // keys, values = past_key_values.update(k, v, layer)
  cache.append(layer, k, v);
  const auto keys = cache.keys(layer, kv_len);
  const auto values = cache.values(layer, kv_len);

  // out = F.scaled_dot_product_attention(q, keys, values, attn_mask=causal, enable_gqa=True)
  const AttentionShape shape{config.n_heads, config.n_kv_heads, config.head_dim,
                             config.windows[layer]};
  const auto probabilities = w.probabilities_for(config.n_heads, seq_len, kv_len);
  attention(q, keys, values, shape, probabilities, out);

  // x = x + o_proj(out)
  linear(p.o, out, projected, w.threads);
  add(projected, x);
}

}  // namespace stagecraft
