// GLM-4 (GLM Team 2024): model type "glm", and "glm4" of 2025, which also norms the result of each
// half of a layer. Differences from Llama: RoPE rotates pairs of neighbouring columns in the first
// half of each head; q, k and v have biases; gate and up are rows of one stored matrix.
#include "model/architectures/architectures.h"
#include "model/config_extensions.h"
#include "model/decoder_writer.h"
#include "model/rope_fields.h"

namespace stagecraft {
namespace {

Plan glm_plan(const ConfigFields& fields) {
  refuse_foreign_arithmetic(fields, {"partial_rotary_factor"});
  const DecoderSizes sizes =
      parse_sizes(fields, {.vocab_size = 151'552,
                           .max_seq_len = 131'072,
                           .norm_eps = 1.5625e-7,
                           .n_kv_heads = 2,
                           .head_dim = fields.is_null("head_dim") ? 0u : 128u});
  const std::string model_type = fields.text_or("model_type", "");
  const bool post_norms = model_type == "glm4";
  const auto function = parse_activation(fields, "hidden_act", "silu");
  const bool bias = fields.flag_or("attention_bias", true);
  const PartialRope partial =
      parse_partial_rope(fields, sizes.max_seq_len, sizes.head_dim, {"partial_rotary_factor", 0.5});
  const float scale = sizes.score_scale();

  Plan plan;
  DecoderWriter w(model_type, sizes, plan, DecoderStyle{.pairs = RopeStep::Pairs::Neighbours});
  const FrequenciesId rope = w.frequencies(partial.rope, partial.columns);
  w.embedding();
  for (std::size_t i = 0; i < sizes.n_layers; ++i) {
    const std::string at = w.layer(i), self = at + "self_attn.", mlp = at + "mlp.";
    w.norm("attn_norm", w.n, w.x, at + "input_layernorm");
    w.qkv(w.n, self, bias);
    w.rope(rope);
    w.attention(scale);
    w.linear("attn_proj", w.o, w.a, self + "o_proj");
    if (post_norms) w.norm("attn_post_norm", w.o, w.o, at + "post_self_attn_layernorm");
    w.add("attn_residual");

    w.norm("mlp_norm", w.n, w.x, at + "post_attention_layernorm");
    w.stacked_gate(w.n, mlp + "gate_up_proj", function);
    w.linear("down", w.o, w.g, mlp + "down_proj");
    if (post_norms) w.norm("mlp_post_norm", w.o, w.o, at + "post_mlp_layernorm");
    w.add("mlp_residual");
  }
  w.logits();
  return plan;
}

constexpr std::string_view kGlmTypes[] = {"glm", "glm4"};

}  // namespace

extern const Architecture architecture_glm;
constinit const Architecture architecture_glm = {kGlmTypes, glm_plan};

}  // namespace stagecraft
