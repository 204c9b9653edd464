// StarCoder2 (Lozhkov et al. 2024). Differences from Llama: norms are LayerNorm, every linear but
// the head has a bias, the feed-forward block has no gate, and attention may have a window.
#include "model/architectures/architectures.h"
#include "model/config_extensions.h"
#include "model/decoder_writer.h"

namespace stagecraft {
namespace {

Plan starcoder2_plan(const ConfigFields& fields) {
  refuse_foreign_arithmetic(fields);
  const DecoderSizes sizes = parse_sizes(
      fields,
      {.vocab_size = 49'152, .max_seq_len = 4096, .tied = true, .norm_eps = 1e-5, .n_kv_heads = 2},
      {.norm_eps = "norm_epsilon"});
  const auto function = parse_activation(fields, "hidden_act", "gelu_pytorch_tanh");
  expect_text(fields, "norm_type", {"layer_norm"});
  expect_text(fields, "mlp_type", {"default"});
  const bool bias = fields.flag_or("use_bias", true);
  const std::size_t window = fields.size_or("sliding_window", 0);
  const float scale = sizes.score_scale();

  Plan plan;
  DecoderWriter w("starcoder2", sizes, plan,
                  DecoderStyle{.norm = NormStep::Kind::Layer, .gated = false});
  const FrequenciesId rope = w.frequencies(parse_rope(fields, sizes.max_seq_len));
  w.embedding();
  for (std::size_t i = 0; i < sizes.n_layers; ++i) {
    const std::string at = w.layer(i), self = at + "self_attn.";
    w.norm("attn_norm", w.n, w.x, at + "input_layernorm");
    w.qkv(w.n, self, bias);
    w.rope(rope);
    w.attention(scale, window);
    w.linear("attn_proj", w.o, w.a, self + "o_proj", bias);
    w.add("attn_residual");

    w.norm("mlp_norm", w.n, w.x, at + "post_attention_layernorm");
    w.mlp(w.n, at + "mlp.c_fc", at + "mlp.c_proj", function, bias);
    w.add("mlp_residual");
  }
  w.logits();
  return plan;
}

constexpr std::string_view kStarcoder2Types[] = {"starcoder2"};

}  // namespace

extern const Architecture architecture_starcoder2;
constinit const Architecture architecture_starcoder2 = {kStarcoder2Types, starcoder2_plan};

}  // namespace stagecraft
