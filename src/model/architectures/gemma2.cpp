// Gemma 2 (Riviere et al. 2024). Beside Llama: embeddings are scaled by sqrt(dim), norms multiply
// with 1 + weight and stand before and after each half of a layer, the gate's activation is GELU,
// scores and logits are soft-capped, and every other layer looks back only so far.
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "model/architectures/architectures.h"
#include "model/config_extensions.h"
#include "model/rope_frequencies.h"

namespace stagecraft {
namespace {

// What of config.json is read here, beside the sizes. What would change the result in another way
// is refused with its name.
constexpr std::array<std::string_view, 3> kHonoured = {
    "query_pre_attn_scalar", "attn_logit_softcapping", "final_logit_softcapping"};
constexpr double kMaxCap = 1e6;

struct Gemma2 {
  std::size_t vocab_size, dim, ffn_dim, n_layers, n_heads, n_kv_heads, head_dim;
  float norm_eps;
  float scale;                      // of attention's scores
  float attention_cap, logits_cap;  // 0: none
  bool tied, bias;
  std::vector<std::size_t> windows;  // [n_layers]; 0: none

  explicit Gemma2(const ConfigFields& fields);
};

// A window on even layers, or as "layer_types" has it.
std::vector<std::size_t> windows_of(const ConfigFields& fields, std::size_t n_layers) {
  const std::size_t window =
      fields.is_null("sliding_window") ? 0 : fields.size_or("sliding_window", 4096);
  std::vector<std::size_t> windows(n_layers);
  for (std::size_t i = 0; i < n_layers; i += 2) windows[i] = window;
  return fields.has("layer_types") ? parse_layer_types(fields, n_layers, window) : windows;
}

float cap_of(const ConfigFields& fields, std::string_view key, double fallback) {
  if (fields.is_null(key)) return 0.0f;
  return static_cast<float>(fields.number_or(key, fallback, 1e-3, kMaxCap));
}

Gemma2::Gemma2(const ConfigFields& fields)
    : vocab_size(fields.size_or("vocab_size", 256'000)),
      dim(fields.size("hidden_size")),
      ffn_dim(fields.size("intermediate_size")),
      n_layers(fields.size("num_hidden_layers", 1, kMaxLayers)),
      n_heads(fields.size("num_attention_heads")),
      n_kv_heads(fields.size_or("num_key_value_heads", 4)),
      head_dim(fields.size_or("head_dim", 256)),
      norm_eps(static_cast<float>(fields.number_or("rms_norm_eps", 1e-6, kMinEps, kMaxEps))),
      attention_cap(cap_of(fields, "attn_logit_softcapping", 50.0)),
      logits_cap(cap_of(fields, "final_logit_softcapping", 30.0)),
      tied(fields.flag_or("tie_word_embeddings", true)),
      bias(fields.flag_or("attention_bias", false)) {
  refuse_foreign_arithmetic(fields, kHonoured);
  check_heads(fields, n_heads, n_kv_heads, head_dim);
  const std::string activation = fields.text_or("hidden_activation", "gelu_pytorch_tanh");
  if (activation != "gelu_pytorch_tanh") {
    throw Error("{}: 'hidden_activation': expected 'gelu_pytorch_tanh', found '{}'", fields.where(),
                printable(activation));
  }
  if (fields.flag_or("use_bidirectional_attention", false)) {
    throw Error("{}: 'use_bidirectional_attention': expected false, found true", fields.where());
  }
  const double scalar = fields.number_or("query_pre_attn_scalar", 256.0, 1e-6, kMaxDimension);
  scale = static_cast<float>(1.0 / std::sqrt(scalar));
  windows = windows_of(fields, n_layers);
}

class Gemma2Plan {
 public:
  Gemma2Plan(const Gemma2& sizes, Plan& plan) : c_(sizes), plan_(plan), w_(plan) {}

  void write(const RopeConfig& rope) {
    rope_ =
        w_.frequencies({fmt::format("theta {}", rope.theta), rope_frequencies(rope, c_.head_dim)});
    const std::string table = "model.embed_tokens.weight", head = "lm_head.weight";
    const std::vector<std::size_t> shape = {c_.vocab_size, c_.dim};
    w_.step("embedding", EmbedStep{x_, w_.weight({table, shape, c_.tied ? head : ""}),
                                   std::sqrt(static_cast<float>(c_.dim))});
    for (std::size_t i = 0; i < c_.n_layers; ++i) {
      w_.layer(static_cast<int>(i));
      const std::string layer = fmt::format("model.layers.{}.", i);
      attention(layer, c_.windows[i]);
      mlp(layer);
    }
    w_.layer(kNone);
    w_.step("", SelectStep{x_});
    norm("final_norm", n_, x_, "model.norm");
    plan_.logits = w_.buffer("logits", c_.vocab_size);
    w_.step(c_.logits_cap == 0.0f ? "logits" : "uncapped_logits",
            LinearStep{plan_.logits, n_, w_.weight({head, shape, c_.tied ? table : ""})});
    if (c_.logits_cap != 0.0f) w_.step("logits", SoftCapStep{plan_.logits, c_.logits_cap});
  }

 private:
  void attention(const std::string& layer, std::size_t window) {
    const std::string self = layer + "self_attn.";
    norm("attn_norm", n_, x_, layer + "input_layernorm");
    w_.linear("q", q_, n_, self + "q_proj", c_.bias);
    w_.linear("k", k_, n_, self + "k_proj", c_.bias);
    w_.linear("v", v_, n_, self + "v_proj", c_.bias);
    w_.step("q_rope", RopeStep{q_, rope_});
    w_.step("k_rope", RopeStep{k_, rope_});
    const CacheId cache = w_.cache({c_.n_kv_heads, c_.head_dim});
    w_.step("", StoreStep{cache, k_, v_});
    w_.step("attn_out",
            AttentionStep{a_, q_, cache, c_.n_heads, c_.scale, window, c_.attention_cap});
    w_.linear("attn_proj", o_, a_, self + "o_proj", c_.bias);
    norm("attn_post_norm", o_, o_, layer + "post_attention_layernorm");
    w_.step("attn_residual", AddStep{x_, o_});
  }

  void mlp(const std::string& layer) {
    norm("mlp_norm", n_, x_, layer + "pre_feedforward_layernorm");
    w_.linear("gate", g_, n_, layer + "mlp.gate_proj", false);
    w_.linear("up", u_, n_, layer + "mlp.up_proj", false);
    w_.step("geglu", ActivateStep{g_, g_, u_, ActivateStep::Function::GeluTanh});
    w_.linear("down", o_, g_, layer + "mlp.down_proj", false);
    norm("mlp_post_norm", o_, o_, layer + "post_feedforward_layernorm");
    w_.step("mlp_residual", AddStep{x_, o_});
  }

  void norm(std::string step, BufferId out, BufferId in, const std::string& weight) {
    w_.norm(std::move(step), out, in, {weight + ".weight", {c_.dim}, "", 1.0f}, c_.norm_eps);
  }

  const Gemma2& c_;
  Plan& plan_;
  PlanWriter w_;
  FrequenciesId rope_ = kNone;
  const std::size_t q_dim_ = c_.n_heads * c_.head_dim, kv_dim_ = c_.n_kv_heads * c_.head_dim;
  const BufferId x_ = w_.buffer("x", c_.dim), n_ = w_.buffer("n", c_.dim);
  const BufferId q_ = w_.buffer("q", q_dim_), k_ = w_.buffer("k", kv_dim_);
  const BufferId v_ = w_.buffer("v", kv_dim_), a_ = w_.buffer("a", q_dim_);
  const BufferId o_ = w_.buffer("o", c_.dim);
  const BufferId g_ = w_.buffer("g", c_.ffn_dim), u_ = w_.buffer("u", c_.ffn_dim);
};

Plan gemma2_plan(const ConfigFields& fields) {
  const Gemma2 sizes(fields);
  Plan plan;
  plan.model_type = "gemma2";
  plan.vocab_size = sizes.vocab_size;
  plan.n_layers = sizes.n_layers;
  plan.max_seq_len = fields.size_or("max_position_embeddings", 8192);
  plan.eos_ids =
      fields.has("eos_token_id") ? parse_eos_ids(fields, sizes.vocab_size) : std::vector<TokenId>{};
  Gemma2Plan(sizes, plan).write(parse_rope(fields, plan.max_seq_len));
  return plan;
}

constexpr std::string_view kModelTypes[] = {"gemma2"};

}  // namespace

extern const Architecture architecture_gemma2;
constinit const Architecture architecture_gemma2 = {kModelTypes, gemma2_plan};

}  // namespace stagecraft
