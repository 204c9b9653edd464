// Granite 3 (IBM 2024). Differences from Llama: config.json has four factors, for the embeddings,
// the scores of attention, the result of each half of a layer and (as a divisor) the logits.
#include "model/architectures/architectures.h"
#include "model/config_extensions.h"
#include "model/decoder_writer.h"

namespace stagecraft {
namespace {

constexpr double kMinMultiplier = 1e-6, kMaxMultiplier = 1e6;

float multiplier(const ConfigFields& fields, std::string_view key) {
  return static_cast<float>(fields.number_or(key, 1.0, kMinMultiplier, kMaxMultiplier));
}

Plan granite_plan(const ConfigFields& fields) {
  refuse_foreign_arithmetic(fields, {"embedding_multiplier", "attention_multiplier",
                                     "residual_multiplier", "logits_scaling"});
  expect_text(fields, "hidden_act", {"silu", "swish"});
  const DecoderSizes sizes = parse_sizes(fields, {.vocab_size = 32'000, .max_seq_len = 2048});
  const bool attention_bias = fields.flag_or("attention_bias", false);
  const bool mlp_bias = fields.flag_or("mlp_bias", false);
  const float of_embedding = multiplier(fields, "embedding_multiplier");
  const float of_scores = multiplier(fields, "attention_multiplier");
  const float of_residual = multiplier(fields, "residual_multiplier");
  const float of_logits = 1.0f / multiplier(fields, "logits_scaling");

  Plan plan;
  DecoderWriter w("granite", sizes, plan);
  const FrequenciesId rope = w.frequencies(parse_rope(fields, sizes.max_seq_len));
  w.embedding(of_embedding);
  for (std::size_t i = 0; i < sizes.n_layers; ++i) {
    const std::string at = w.layer(i), self = at + "self_attn.", mlp = at + "mlp.";
    w.norm("attn_norm", w.n, w.x, at + "input_layernorm");
    w.qkv(w.n, self, attention_bias);
    w.rope(rope);
    w.attention(of_scores);
    w.linear("attn_proj", w.o, w.a, self + "o_proj", attention_bias);
    w.add("attn_residual", of_residual);

    w.norm("mlp_norm", w.n, w.x, at + "post_attention_layernorm");
    w.gate(w.n, mlp, ActivateStep::Function::Silu, mlp_bias);
    w.linear("down", w.o, w.g, mlp + "down_proj", mlp_bias);
    w.add("mlp_residual", of_residual);
  }
  w.logits(of_logits);
  return plan;
}

constexpr std::string_view kGraniteTypes[] = {"granite"};

}  // namespace

extern const Architecture architecture_granite;
constinit const Architecture architecture_granite = {kGraniteTypes, granite_plan};

}  // namespace stagecraft
