// OLMo 3 (Ai2 2025). Differences from OLMo 2: three of four layers have a window. If yarn stretches
// RoPE, then only in the layers without a window.

#include "model/architectures/architectures.h"
#include "model/architectures/olmo_common.h"
#include "model/config_extensions.h"
#include "model/layer_fields.h"
#include "model/rope_fields.h"

namespace stagecraft {
namespace {

constexpr double kTheta = 500'000.0;
constexpr std::size_t kOlmo3Pattern = 4;

// If theta stands at the top of the file, some versions of transformers use it in all layers,
// others only in the layers without a window.
void refuse_unclear_theta(const ConfigFields& fields) {
  const std::optional<JsonNode> theta = fields.find("rope_theta");
  if (!theta || parse_theta(fields, "rope_theta", kTheta) == kTheta) return;
  throw Error(
      "{}: 'rope_theta': expected {} (or one per kind of layer in 'rope_parameters'), found {}",
      fields.where(), kTheta, theta->describe());
}

// transformers ignores "truncate" in the place where this architecture has it, so false is refused.
void refuse_exact_bounds(const ConfigFields& fields, const RopeConfig& rope) {
  if (rope.truncate) return;
  throw Error("{}: 'truncate': expected true, found false", fields.where());
}

Plan olmo3_plan(const ConfigFields& fields) {
  refuse_foreign_arithmetic(fields);
  refuse_unclear_theta(fields);
  const DecoderSizes sizes =
      parse_sizes(fields, {.vocab_size = 50'304, .max_seq_len = 2048, .norm_eps = 1e-5});
  const std::vector<std::size_t> windows =
      parse_window_pattern(fields, sizes.n_layers, kOlmo3Pattern);
  const RopeConfig ropes[] = {
      parse_rope_of(fields, sizes.max_seq_len, {.theta = kTheta, .honoured = kYarn}),
      parse_rope_of(fields, sizes.max_seq_len,
                    {.slides = true, .theta = kTheta, .honoured = kYarn})};
  refuse_exact_bounds(fields, ropes[0]);
  OlmoLayer layer;
  layer.function = parse_activation(fields, "hidden_act", "silu");
  layer.bias = fields.flag_or("attention_bias", false);

  Plan plan;
  DecoderWriter w("olmo3", sizes, plan);
  const FrequenciesId tables[] = {w.frequencies(ropes[0]), w.frequencies(ropes[1])};
  w.embedding();
  for (std::size_t i = 0; i < sizes.n_layers; ++i) {
    layer.window = windows[i];
    const bool slides = windows[i] != 0;
    layer.rope = tables[slides];
    layer.scale = sizes.score_scale(ropes[slides]);
    olmo_layer(w, i, layer);
  }
  w.logits();
  return plan;
}

constexpr std::string_view kOlmo3Types[] = {"olmo3"};

}  // namespace

extern const Architecture architecture_olmo3;
constinit const Architecture architecture_olmo3 = {kOlmo3Types, olmo3_plan};

}  // namespace stagecraft
