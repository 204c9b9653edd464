// ERNIE 4.5 without experts (Baidu 2025). Differences from Llama: RoPE rotates pairs of
// neighbouring columns, and every linear but the head may have a bias.
#include "model/architectures/architectures.h"
#include "model/config_extensions.h"
#include "model/decoder_writer.h"

namespace stagecraft {
namespace {

Plan ernie4_5_plan(const ConfigFields& fields) {
  refuse_foreign_arithmetic(fields);
  const DecoderSizes sizes =
      parse_sizes(fields, {.vocab_size = 103'424,
                           .max_seq_len = 131'072,
                           .tied = true,
                           .norm_eps = 1e-5,
                           .n_kv_heads = fields.is_null("num_key_value_heads") ? 0u : 2u,
                           .head_dim = fields.is_null("head_dim") ? 0u : 128u});
  const auto function = parse_activation(fields, "hidden_act", "silu");
  const bool bias = fields.flag_or("use_bias", false);
  const float scale = sizes.score_scale();

  Plan plan;
  DecoderWriter w("ernie4_5", sizes, plan, DecoderStyle{.pairs = RopeStep::Pairs::Neighbours});
  const FrequenciesId rope = w.frequencies(parse_rope(fields, sizes.max_seq_len, 500'000.0));
  w.embedding();
  for (std::size_t i = 0; i < sizes.n_layers; ++i) {
    const std::string at = w.layer(i), self = at + "self_attn.", mlp = at + "mlp.";
    w.norm("attn_norm", w.n, w.x, at + "input_layernorm");
    w.qkv(w.n, self, bias);
    w.rope(rope);
    w.attention(scale);
    w.linear("attn_proj", w.o, w.a, self + "o_proj", bias);
    w.add("attn_residual");

    w.norm("mlp_norm", w.n, w.x, at + "post_attention_layernorm");
    w.gate(w.n, mlp, function, bias);
    w.linear("down", w.o, w.g, mlp + "down_proj", bias);
    w.add("mlp_residual");
  }
  w.logits();
  return plan;
}

constexpr std::string_view kErnie45Types[] = {"ernie4_5"};

}  // namespace

extern const Architecture architecture_ernie4_5;
constinit const Architecture architecture_ernie4_5 = {kErnie45Types, ernie4_5_plan};

}  // namespace stagecraft
