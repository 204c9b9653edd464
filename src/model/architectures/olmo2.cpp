// OLMo 2 (Walsh et al. 2024). Differences from Llama: a norm stands after each half of a layer
// instead of before it, and the whole rows of q and k are normed, all heads at once.

#include "model/architectures/architectures.h"
#include "model/architectures/olmo_common.h"
#include "model/config_extensions.h"

namespace stagecraft {
namespace {

Plan olmo2_plan(const ConfigFields& fields) {
  refuse_foreign_arithmetic(fields);
  const DecoderSizes sizes =
      parse_sizes(fields, {.vocab_size = 50'304, .max_seq_len = 2048, .norm_eps = 1e-5});
  OlmoLayer layer;
  layer.function = parse_activation(fields, "hidden_act", "silu");
  layer.bias = fields.flag_or("attention_bias", false);
  const RopeConfig rope = parse_rope(fields, sizes.max_seq_len, 10'000.0, kYarn);
  layer.scale = sizes.score_scale(rope);

  Plan plan;
  DecoderWriter w("olmo2", sizes, plan);
  layer.rope = w.frequencies(rope);
  w.embedding();
  for (std::size_t i = 0; i < sizes.n_layers; ++i) olmo_layer(w, i, layer);
  w.logits();
  return plan;
}

constexpr std::string_view kOlmo2Types[] = {"olmo2"};

}  // namespace

extern const Architecture architecture_olmo2;
constinit const Architecture architecture_olmo2 = {kOlmo2Types, olmo2_plan};

}  // namespace stagecraft
