// Gemma 3 (Kamath et al. 2025), text only. Differences from Gemma 2: no soft caps, a norm of each
// head of q and k, and two kinds of layers: five of six are local, with a window and their own
// RoPE.
#include "model/architectures/architectures.h"
#include "model/architectures/gemma_common.h"
#include "model/config_extensions.h"
#include "model/layer_fields.h"
#include "model/rope_fields.h"

namespace stagecraft {
namespace {

constexpr double kGlobalLayersTheta = 1'000'000.0;

Plan gemma3_plan(const ConfigFields& fields) {
  refuse_foreign_arithmetic(fields, {"query_pre_attn_scalar"});
  expect_text(fields, "hidden_activation", {"gelu_pytorch_tanh"});
  expect_false(fields, "use_bidirectional_attention");
  const DecoderSizes sizes = parse_sizes(fields, {.vocab_size = 262'208,
                                                  .max_seq_len = 131'072,
                                                  .tied = true,
                                                  .n_kv_heads = 4,
                                                  .head_dim = 256});
  const std::vector<std::size_t> windows =
      parse_window_pattern(fields, sizes.n_layers, fields.size_or("sliding_window_pattern", 6));
  GemmaLayer layer;
  layer.scale = gemma_attention_scale(fields);
  layer.bias = fields.flag_or("attention_bias", false);
  layer.qk_norm = true;

  Plan plan;
  DecoderWriter w("gemma3_text", sizes, plan, {.norm_plus = kGemmaNormPlus});
  const FrequenciesId global =
      w.frequencies(parse_rope_of(fields, sizes.max_seq_len, {.theta = kGlobalLayersTheta}));
  const FrequenciesId local = w.frequencies(parse_rope_of(
      fields, sizes.max_seq_len, {.slides = true, .theta_key = "rope_local_base_freq"}));
  w.embedding(gemma_embedding_scale(sizes));
  for (std::size_t i = 0; i < sizes.n_layers; ++i) {
    layer.window = windows[i];
    layer.rope = windows[i] == 0 ? global : local;
    gemma_layer(w, i, layer);
  }
  w.logits();
  return plan;
}

constexpr std::string_view kGemma3Types[] = {"gemma3_text"};

}  // namespace

extern const Architecture architecture_gemma3;
constinit const Architecture architecture_gemma3 = {kGemma3Types, gemma3_plan};

}  // namespace stagecraft
