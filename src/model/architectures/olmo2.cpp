// OLMo 2 (Walsh et al. 2024). Beside Llama: norms stand after each half of a
// layer, not before it, and whole rows of q and k are normed, all heads at
// once.
#include <cmath>

#include "model/architectures/architectures.h"
#include "model/architectures/decoder_common.h"
#include "model/config_extensions.h"

namespace stagecraft {
namespace {

Plan olmo2_plan(const ConfigFields& fields) {
  refuse_foreign_arithmetic(fields);
  expect_text(fields, "hidden_act", {"silu", "swish"});
  const DecoderSizes sizes =
      parse_sizes(fields, {.vocab_size = 50'304, .max_seq_len = 2048, .norm_eps = 1e-5});
  const bool bias = fields.flag_or("attention_bias", false);
  const float scale = 1.0f / std::sqrt(static_cast<float>(sizes.head_dim));

  Plan plan;
  DecoderWriter w("olmo2", sizes, plan);
  const FrequenciesId rope = w.frequencies(parse_rope(fields, sizes.max_seq_len));
  w.embedding();
  for (std::size_t i = 0; i < sizes.n_layers; ++i) {
    const std::string at = w.layer(i), self = at + "self_attn.", mlp = at + "mlp.";
    w.qkv(w.x, self, bias);
    w.norm("q_norm", w.q, w.q, self + "q_norm");
    w.norm("k_norm", w.k, w.k, self + "k_norm");
    w.rope(rope);
    w.attention(scale);
    w.linear("attn_proj", w.o, w.a, self + "o_proj", bias);
    w.norm("attn_post_norm", w.o, w.o, at + "post_attention_layernorm");
    w.add("attn_residual");

    w.gate(w.x, mlp, ActivateStep::Function::Silu);
    w.linear("down", w.o, w.g, mlp + "down_proj");
    w.norm("mlp_post_norm", w.o, w.o, at + "post_feedforward_layernorm");
    w.add("mlp_residual");
  }
  w.logits();
  return plan;
}

constexpr std::string_view kModelTypes[] = {"olmo2"};

}  // namespace

extern const Architecture architecture_olmo2;
constinit const Architecture architecture_olmo2 = {kModelTypes, olmo2_plan};

}  // namespace stagecraft
