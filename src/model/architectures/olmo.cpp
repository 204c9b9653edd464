// OLMo 1 (Groeneveld et al. 2024). Differences from Llama: norms are LayerNorm without weights and
// biases, and the numbers of q, k and v may be clipped.
#include "model/architectures/architectures.h"
#include "model/config_extensions.h"
#include "model/decoder_writer.h"

namespace stagecraft {
namespace {

constexpr double kNormEps = 1e-5;  // not in config.json; "stored_norm_eps": kStoredFields

Plan olmo_plan(const ConfigFields& fields) {
  refuse_foreign_arithmetic(fields, {"clip_qkv"});
  DecoderSizes sizes = parse_sizes(fields, {.vocab_size = 50'304, .max_seq_len = 2048});
  sizes.norm_eps =
      static_cast<float>(fields.number_or("stored_norm_eps", kNormEps, kMinEps, kMaxEps));
  const auto function = parse_activation(fields, "hidden_act", "silu");
  const bool bias = fields.flag_or("attention_bias", false);
  const std::optional<float> limit = parse_clip_qkv(fields);
  const float scale = sizes.score_scale();

  Plan plan;
  DecoderWriter w(
      "olmo", sizes, plan,
      DecoderStyle{.norm = NormStep::Kind::Layer, .norm_weight = false, .norm_bias = false});
  const FrequenciesId rope = w.frequencies(parse_rope(fields, sizes.max_seq_len));
  w.embedding();
  for (std::size_t i = 0; i < sizes.n_layers; ++i) {
    const std::string at = w.layer(i), self = at + "self_attn.", mlp = at + "mlp.";
    w.norm("attn_norm", w.n, w.x, at + "input_layernorm");
    w.qkv(w.n, self, bias);
    w.clip_qkv(limit);
    w.rope(rope);
    w.attention(scale);
    w.linear("attn_proj", w.o, w.a, self + "o_proj", bias);
    w.add("attn_residual");

    w.norm("mlp_norm", w.n, w.x, at + "post_attention_layernorm");
    w.gate(w.n, mlp, function);
    w.linear("down", w.o, w.g, mlp + "down_proj");
    w.add("mlp_residual");
  }
  w.logits();
  return plan;
}

constexpr std::string_view kOlmoTypes[] = {"olmo"};

}  // namespace

extern const Architecture architecture_olmo;
constinit const Architecture architecture_olmo = {kOlmoTypes, olmo_plan};

}  // namespace stagecraft
