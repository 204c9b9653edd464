// Gemma 2 (Riviere et al. 2024). Differences from Gemma 1: there is also a norm after each half of
// a layer, scores and logits are soft-capped, and every other layer has a window.
#include "model/architectures/architectures.h"
#include "model/architectures/gemma_common.h"
#include "model/config_extensions.h"
#include "model/layer_fields.h"

namespace stagecraft {
namespace {

Plan gemma2_plan(const ConfigFields& fields) {
  // The fields of config.json that are read here, apart from the sizes. Other fields that would
  // change the result are refused by name.
  refuse_foreign_arithmetic(
      fields, {"query_pre_attn_scalar", "attn_logit_softcapping", "final_logit_softcapping"});
  expect_text(fields, "hidden_activation", {"gelu_pytorch_tanh"});
  expect_false(fields, "use_bidirectional_attention");
  const DecoderSizes sizes = parse_sizes(
      fields,
      {.vocab_size = 256'000, .max_seq_len = 8192, .tied = true, .n_kv_heads = 4, .head_dim = 256});
  const std::size_t window = fields.is_null("sliding_window") ? 0 : parse_window(fields);
  const std::vector<std::size_t> windows = parse_sliding_layers(
      fields, sizes.n_layers, window, [](std::size_t i) { return i % 2 == 0; });
  GemmaLayer layer;
  layer.scale = gemma_attention_scale(fields);
  layer.soft_cap = gemma_soft_cap(fields, "attn_logit_softcapping", 50.0);
  layer.bias = fields.flag_or("attention_bias", false);

  Plan plan;
  DecoderWriter w("gemma2", sizes, plan, {.norm_plus = kGemmaNormPlus});
  layer.rope = w.frequencies(parse_rope(fields, sizes.max_seq_len));
  w.embedding(gemma_embedding_scale(sizes));
  for (std::size_t i = 0; i < sizes.n_layers; ++i) {
    layer.window = windows[i];
    gemma_layer(w, i, layer);
  }
  w.logits(1.0f, gemma_soft_cap(fields, "final_logit_softcapping", 30.0));
  return plan;
}

constexpr std::string_view kGemma2Types[] = {"gemma2"};

}  // namespace

extern const Architecture architecture_gemma2;
constinit const Architecture architecture_gemma2 = {kGemma2Types, gemma2_plan};

}  // namespace stagecraft
