// Gemma 1 (Gemma Team 2024). Differences from Llama: embeddings are scaled by sqrt(dim), norms
// multiply with 1 + weight, and the gate's activation function is GELU.
#include "model/architectures/architectures.h"
#include "model/architectures/gemma_common.h"
#include "model/config_extensions.h"

namespace stagecraft {
namespace {

Plan gemma_plan(const ConfigFields& fields) {
  refuse_foreign_arithmetic(fields);
  // The first files say "gelu", but were trained with its tanh form. transformers also uses the
  // tanh form.
  expect_text(fields, "hidden_act", {"gelu_pytorch_tanh", "gelu"});
  expect_text(fields, "hidden_activation", {"gelu_pytorch_tanh"});
  expect_false(fields, "use_bidirectional_attention");
  const DecoderSizes sizes = parse_sizes(
      fields, {.vocab_size = 256'000, .max_seq_len = 8192, .tied = true, .head_dim = 256});
  const bool bias = fields.flag_or("attention_bias", false);
  const float scale = sizes.score_scale();

  Plan plan;
  DecoderWriter w("gemma", sizes, plan, {.norm_plus = kGemmaNormPlus});
  const FrequenciesId rope = w.frequencies(parse_rope(fields, sizes.max_seq_len));
  w.embedding(gemma_embedding_scale(sizes));
  for (std::size_t i = 0; i < sizes.n_layers; ++i) {
    const std::string at = w.layer(i), self = at + "self_attn.", mlp = at + "mlp.";
    w.norm("attn_norm", w.n, w.x, at + "input_layernorm");
    w.qkv(w.n, self, bias);
    w.rope(rope);
    w.attention(scale);
    w.linear("attn_proj", w.o, w.a, self + "o_proj", bias);
    w.add("attn_residual");

    w.norm("mlp_norm", w.n, w.x, at + "post_attention_layernorm");
    w.gate(w.n, mlp, ActivateStep::Function::GeluTanh);
    w.linear("down", w.o, w.g, mlp + "down_proj");
    w.add("mlp_residual");
  }
  w.logits();
  return plan;
}

constexpr std::string_view kGemmaTypes[] = {"gemma"};

}  // namespace

extern const Architecture architecture_gemma;
constinit const Architecture architecture_gemma = {kGemmaTypes, gemma_plan};

}  // namespace stagecraft
