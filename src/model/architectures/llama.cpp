// Llama, Mistral, Qwen2 and Qwen3: one plan, in which a few parts may be absent.
#include "model/architectures/llama.h"

#include <cmath>

#include <fmt/format.h>

#include "model/architectures/architectures.h"
#include "model/architectures/decoder_common.h"
#include "model/plan_writer.h"
#include "model/rope_frequencies.h"

namespace stagecraft {
namespace {

class LlamaPlan {
 public:
  LlamaPlan(const Config& config, ActivateStep::Function function)
      : c_(config), function_(function), w_(plan_) {}

  Plan write() {
    plan_.model_type = c_.model_type;
    plan_.vocab_size = c_.vocab_size;
    plan_.n_layers = c_.n_layers;
    plan_.max_seq_len = c_.max_seq_len;
    plan_.eos_ids = c_.eos_ids;
    rope_ = w_.frequencies({rope_text(c_.rope), rope_frequencies(c_.rope, c_.head_dim)});

    // Files of a tied model store its table under either name.
    const std::string table = "model.embed_tokens.weight", head = "lm_head.weight";
    const std::vector<std::size_t> shape = {c_.vocab_size, c_.dim};
    w_.step("embedding", EmbedStep{x_, w_.weight({table, shape, c_.tied_embeddings ? head : ""})});
    for (std::size_t i = 0; i < c_.n_layers; ++i) {
      w_.layer(static_cast<int>(i));
      const std::string layer = fmt::format("model.layers.{}.", i);
      attention(layer, c_.windows[i]);
      mlp(layer);
    }
    w_.layer(kNone);
    w_.step("", SelectStep{x_});
    w_.norm("final_norm", n_, x_, {"model.norm.weight", {c_.dim}}, c_.norm_eps);
    plan_.logits = w_.buffer("logits", c_.vocab_size);
    w_.step("logits", LinearStep{plan_.logits, n_,
                                 w_.weight({head, shape, c_.tied_embeddings ? table : ""})});
    return std::move(plan_);
  }

 private:
  void attention(const std::string& layer, std::size_t window) {
    const std::string self = layer + "self_attn.";
    w_.norm("attn_norm", n_, x_, {layer + "input_layernorm.weight", {c_.dim}}, c_.norm_eps);
    w_.linear("q", q_, n_, self + "q_proj", c_.qkv_bias);
    w_.linear("k", k_, n_, self + "k_proj", c_.qkv_bias);
    w_.linear("v", v_, n_, self + "v_proj", c_.qkv_bias);
    if (c_.qk_norm) {
      w_.norm("q_norm", q_, q_, {self + "q_norm.weight", {c_.head_dim}}, c_.norm_eps);
      w_.norm("k_norm", k_, k_, {self + "k_norm.weight", {c_.head_dim}}, c_.norm_eps);
    }
    w_.step("q_rope", RopeStep{q_, rope_, c_.head_dim});
    w_.step("k_rope", RopeStep{k_, rope_, c_.head_dim});
    const CacheId cache = w_.cache({c_.n_kv_heads, c_.head_dim});
    w_.step("", StoreStep{cache, k_, v_});
    const float scale = 1.0f / std::sqrt(static_cast<float>(c_.head_dim));
    w_.step("attn_out", AttentionStep{a_, q_, cache, c_.n_heads, scale, window});
    w_.linear("attn_proj", o_, a_, self + "o_proj", c_.o_bias);
    w_.step("attn_residual", AddStep{x_, o_});
  }

  void mlp(const std::string& layer) {
    const std::string mlp = layer + "mlp.";
    w_.norm("mlp_norm", n_, x_, {layer + "post_attention_layernorm.weight", {c_.dim}}, c_.norm_eps);
    w_.linear("gate", g_, n_, mlp + "gate_proj", c_.mlp_bias);
    w_.linear("up", u_, n_, mlp + "up_proj", c_.mlp_bias);
    w_.step(gated_name(function_), ActivateStep{g_, g_, u_, function_});
    w_.linear("down", o_, g_, mlp + "down_proj", c_.mlp_bias);
    w_.step("mlp_residual", AddStep{x_, o_});
  }

  const Config& c_;
  const ActivateStep::Function function_;
  Plan plan_;
  PlanWriter w_;
  FrequenciesId rope_ = kNone;
  const BufferId x_ = w_.buffer("x", c_.dim), n_ = w_.buffer("n", c_.dim);
  const BufferId q_ = w_.buffer("q", c_.q_dim()), k_ = w_.buffer("k", c_.kv_dim());
  const BufferId v_ = w_.buffer("v", c_.kv_dim()), a_ = w_.buffer("a", c_.q_dim());
  const BufferId o_ = w_.buffer("o", c_.dim);
  const BufferId g_ = w_.buffer("g", c_.ffn_dim), u_ = w_.buffer("u", c_.ffn_dim);
};

}  // namespace

Plan llama_plan(const Config& config, ActivateStep::Function function) {
  return LlamaPlan(config, function).write();
}

}  // namespace stagecraft
