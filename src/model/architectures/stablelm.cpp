// StableLM 2 and StableLM 3B (Bellagente et al. 2024). Differences from Llama: norms are LayerNorm,
// RoPE rotates the first columns of each head, q, k and v may have biases, and both halves of a
// layer may read the result of one norm.
#include "model/architectures/architectures.h"
#include "model/config_extensions.h"
#include "model/decoder_writer.h"
#include "model/rope_fields.h"

namespace stagecraft {
namespace {

Plan stablelm_plan(const ConfigFields& fields) {
  // This also refuses qk_layernorm: a norm with its own weights for each head.
  refuse_foreign_arithmetic(fields, {"partial_rotary_factor", "use_parallel_residual"});
  expect_text(fields, "hidden_act", {"silu", "swish"});
  const DecoderSizes sizes = parse_sizes(
      fields, {.vocab_size = 50'304, .max_seq_len = 4096, .norm_eps = 1e-5, .n_kv_heads = 32},
      {.norm_eps = "layer_norm_eps"});
  const bool bias = fields.flag_or("use_qkv_bias", false);
  const bool parallel = fields.flag_or("use_parallel_residual", false);
  const PartialRope partial = parse_partial_rope(fields, sizes.max_seq_len, sizes.head_dim,
                                                 {"partial_rotary_factor", 0.25});
  const float scale = sizes.score_scale();

  Plan plan;
  DecoderWriter w("stablelm", sizes, plan, DecoderStyle{.norm = NormStep::Kind::Layer});
  const FrequenciesId rope = w.frequencies(partial.rope, partial.columns);
  w.embedding();
  for (std::size_t i = 0; i < sizes.n_layers; ++i) {
    const std::string at = w.layer(i), self = at + "self_attn.", mlp = at + "mlp.";
    w.norm("attn_norm", w.n, w.x, at + "input_layernorm");
    w.qkv(w.n, self, bias);
    w.rope(rope);
    w.attention(scale);
    w.linear("attn_proj", w.o, w.a, self + "o_proj");
    w.add("attn_residual");

    if (!parallel) w.norm("mlp_norm", w.n, w.x, at + "post_attention_layernorm");
    w.gate(w.n, mlp, ActivateStep::Function::Silu);
    w.linear("down", w.o, w.g, mlp + "down_proj");
    w.add("mlp_residual");
  }
  w.logits();
  return plan;
}

constexpr std::string_view kStablelmTypes[] = {"stablelm"};

}  // namespace

extern const Architecture architecture_stablelm;
constinit const Architecture architecture_stablelm = {kStablelmTypes, stablelm_plan};

}  // namespace stagecraft
