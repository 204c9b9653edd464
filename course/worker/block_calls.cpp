#include <algorithm>
#include <functional>

#include "base/error.h"
#include "course/worker/calls.h"
#include "course/worker/operator_record.h"
#include "model/attention_block.h"
#include "model/mlp.h"
#include "model/rope_frequencies.h"

namespace stagecraft::stages {
namespace {

// The weight with this name in a checkpoint, and its bias if the request has one.
Linear linear_of(Arguments& args, const std::string& name) {
  Linear layer{args.matrix(name + ".weight"), {}};
  if (args.has(name + ".bias")) layer.bias = args.vector(name + ".bias");
  return layer;
}

// A workspace for one block. With more rows than this pass has (3, 5 ...), it finds code that uses
// a whole buffer; with as many (1, 2, 4 ...), code that writes one row too many.
Workspace workspace_for(const Config& config, std::size_t rows, std::size_t context) {
  const std::size_t more = rows == 1 || rows % 2 == 0 ? 0 : 2;
  return {config, rows + more, context + more, 1};
}

// Calls a block with x; if the number of rows is odd, x is in w.hidden, as in the model: this finds
// code that uses `hidden` for something else. A separate x finds code that writes a row too many.
void call_block(MatrixView<float> x, Workspace& w,
                const std::function<void(MatrixView<float>)>& block) {
  if (x.rows() % 2 == 0) return block(x);
  const auto hidden = w.hidden.top_rows(x.rows());
  for (std::size_t t = 0; t < x.rows(); ++t) std::ranges::copy(x.row(t), hidden.row(t).begin());
  block(hidden);
  for (std::size_t t = 0; t < x.rows(); ++t) std::ranges::copy(hidden.row(t), x.row(t).begin());
}

void call_mlp(Arguments& args) {
  MlpParameters p;
  p.norm = args.vector("post_attention_layernorm.weight");
  p.gate = linear_of(args, "mlp.gate_proj");
  p.up = linear_of(args, "mlp.up_proj");
  p.down = linear_of(args, "mlp.down_proj");
  const auto x = args.in_out("x");

  Config config;
  config.norm_eps = static_cast<float>(args.scalar("eps"));
  config.dim = x.cols();
  config.ffn_dim = p.gate.weight.rows();
  config.n_heads = config.n_kv_heads = 1;
  config.head_dim = 2;
  Workspace workspace = workspace_for(config, x.rows(), x.rows());
  start_operator_record();
  call_block(x, workspace, [&](auto hidden) { mlp(config, p, hidden, workspace); });
  name_operators({{p.norm.data(), "mlp_norm"},
                  {p.gate.weight.data(), "gate"},
                  {p.up.weight.data(), "up"},
                  {nullptr, "swiglu"},
                  {p.down.weight.data(), "down"}},
                 x.rows(), args);
  // The handout asks students to leave these results in the workspace.
  args.record("w.gate", workspace.gate.top_rows(x.rows()));
  args.record("w.up", workspace.up.top_rows(x.rows()));
}

void call_attention_block(Arguments& args) {
  AttentionParameters p;
  p.norm = args.vector("input_layernorm.weight");
  p.q = linear_of(args, "self_attn.q_proj");
  p.k = linear_of(args, "self_attn.k_proj");
  p.v = linear_of(args, "self_attn.v_proj");
  p.o = linear_of(args, "self_attn.o_proj");
  const bool qk_norm = args.has("self_attn.q_norm.weight");
  if (qk_norm) {
    p.q_norm = args.vector("self_attn.q_norm.weight");
    p.k_norm = args.vector("self_attn.k_norm.weight");
  }
  const auto past_k = args.matrix("past_k");
  const auto past_v = args.matrix("past_v");
  const auto x = args.in_out("x");

  Config config;
  config.norm_eps = static_cast<float>(args.scalar("eps"));
  config.dim = x.cols();
  config.ffn_dim = 1;
  config.n_layers = 3;
  config.n_heads = args.size("n_heads");
  config.n_kv_heads = args.size("n_kv_heads");
  config.head_dim = args.size("head_dim");
  config.rope.theta = args.scalar("rope_theta");
  config.qk_norm = qk_norm;
  // The middle one of three layers: finds code that uses the cache or the window of another layer.
  constexpr std::size_t kLayer = 1;
  config.windows = {1, args.size("window"), 1};

  const std::size_t kv_len = past_k.rows() + x.rows();
  KvCache cache(config, kv_len);
  cache.append(kLayer, past_k, past_v);
  cache.advance(past_k.rows());
  Workspace workspace = workspace_for(config, x.rows(), kv_len);
  start_operator_record();
  call_block(x, workspace,
             [&](auto hidden) { attention_block(config, p, kLayer, hidden, cache, workspace); });
  if (cache.length() != past_k.rows()) args.tell_changed("cache.length()");
  // The contract says which results stay in the cache and the workspace; they show three more
  // steps.
  const auto new_rows = [&](MatrixView<const float> all) {
    return all.row_range(past_k.rows(), x.rows());
  };
  args.record("v", new_rows(cache.values(kLayer, kv_len)));
  args.record("k_rope", new_rows(cache.keys(kLayer, kv_len)));
  args.record("attn_probs", workspace.probabilities_for(config.n_heads, x.rows(), kv_len));
  // v may be wrong before it is stored in the cache.
  name_operators({{p.norm.data(), "attn_norm"},
                  {p.q.weight.data(), "q"},
                  {p.k.weight.data(), "k"},
                  {p.v.weight.data(), "v"},
                  {p.o.weight.data(), "attn_proj"}},
                 x.rows(), args);
  args.record("keys in the cache", cache.keys(kLayer, kv_len));
  args.record("values in the cache", cache.values(kLayer, kv_len));
  args.record("w.probabilities", workspace.probabilities_for(config.n_heads, x.rows(), kv_len));
}

const Callable kBlockCalls{{"mlp", call_mlp}, {"attention_block", call_attention_block}};

}  // namespace

}  // namespace stagecraft::stages
