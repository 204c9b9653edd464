// Right: rope row by row, the values first.
#include "model/attention_block.h"

#include "model/linear.h"
#include "operators/add.h"
#include "operators/attention.h"
#include "operators/rms_norm.h"
#include "operators/rope.h"

namespace stagecraft {
namespace {

void norm_heads(MatrixView<float> x, std::span<const float> weight, float eps) {
  for (std::size_t t = 0; t < x.rows(); ++t) {
    const MatrixView<float> heads(x.row(t).data(), x.cols() / weight.size(), weight.size());
    rms_norm(heads, weight, eps, heads);
  }
}

}  // namespace

void attention_block(const Config& config, const AttentionParameters& p, std::size_t layer,
                     MatrixView<float> x, KvCache& cache, Workspace& w) {
  const std::size_t past = cache.length();
  const auto normed = w.normed.top_rows(x.rows());
  const auto q = w.q.top_rows(x.rows());
  const auto k = w.k.top_rows(x.rows());
  const auto v = w.v.top_rows(x.rows());
  const auto out = w.attention_out.top_rows(x.rows());
  rms_norm(x, p.norm, config.norm_eps, normed);
  linear(p.v, normed, v, w.threads);
  linear(p.k, normed, k, w.threads);
  linear(p.q, normed, q, w.threads);
  if (config.qk_norm) {
    norm_heads(q, p.q_norm, config.norm_eps);
    norm_heads(k, p.k_norm, config.norm_eps);
  }
  rope(k, w.inv_freq, past);
  for (std::size_t t = 0; t < x.rows(); ++t) rope(q.row_range(t, 1), w.inv_freq, past + t);
  cache.append(layer, k, v);
  const std::size_t kv_len = past + x.rows();
  const AttentionShape shape{config.n_heads, config.n_kv_heads, config.head_dim,
                             config.windows[layer]};
  attention(q, cache.keys(layer, kv_len), cache.values(layer, kv_len), shape,
            w.probabilities_for(config.n_heads, x.rows(), kv_len), out);
  const auto projected = w.projected.top_rows(x.rows());
  linear(p.o, out, projected, w.threads);
  add(projected, x);
}

}  // namespace stagecraft
