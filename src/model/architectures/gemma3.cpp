// Gemma 3 (Kamath et al. 2025), text only. Beside Gemma 2: no soft caps, a norm
// of each head of q and k, and two kinds of layers: five of six are local, with
// a window and a rope of their own.
#include <array>

#include "model/architectures/architectures.h"
#include "model/architectures/gemma_common.h"
#include "model/config_extensions.h"

namespace stagecraft {
namespace {

constexpr std::array<std::string_view, 1> kHonoured = {"query_pre_attn_scalar"};
constexpr double kLocalTheta = 10'000.0, kGlobalTheta = 1'000'000.0;

// 0 for a global layer. Each sixth is one, or as "layer_types" has it.
std::vector<std::size_t> windows_of(const ConfigFields& fields, std::size_t n_layers) {
  const std::size_t window =
      fields.is_null("sliding_window") ? 0 : fields.size_or("sliding_window", 4096);
  if (fields.has("layer_types")) return parse_layer_types(fields, n_layers, window);
  const std::size_t pattern = fields.size_or("sliding_window_pattern", 6);
  if (window == 0) throw Error("{}: 'sliding_window': expected a size, found null", fields.where());
  std::vector<std::size_t> windows(n_layers);
  for (std::size_t i = 0; i < n_layers; ++i) windows[i] = (i + 1) % pattern == 0 ? 0 : window;
  return windows;
}

// Newer files: one object of "rope_parameters" per kind of layer. Older: a
// theta each at the top, and "rope_scaling" for the global layers.
RopeConfig rope_of(const ConfigFields& fields, std::size_t max_seq_len, bool local) {
  Json one = Json::object();
  const Json* const theta = fields.find(local ? "rope_local_base_freq" : "rope_theta");
  one["rope_theta"] = theta != nullptr ? *theta : Json(local ? kLocalTheta : kGlobalTheta);
  const Json* const scaling = local ? nullptr : fields.find("rope_scaling");
  if (scaling != nullptr) one["rope_scaling"] = *scaling;
  if (const Json* const kinds = fields.find("rope_parameters")) {
    if (!kinds->is_object()) {
      throw Error("{}: 'rope_parameters': expected an object, found {}", fields.where(),
                  describe_json(*kinds));
    }
    for (const auto& [name, value] : kinds->items()) {
      if (name == "full_attention" || name == "sliding_attention") continue;
      throw Error(
          "{}: rope_parameters: expected 'full_attention' and "
          "'sliding_attention', found '{}'",
          fields.where(), printable(name));
    }
    const char* const kind = local ? "sliding_attention" : "full_attention";
    if (kinds->contains(kind)) one["rope_parameters"] = kinds->at(kind);
  }
  return parse_rope(ConfigFields(one, fields.where()), max_seq_len);
}

Plan gemma3_plan(const ConfigFields& fields) {
  refuse_foreign_arithmetic(fields, kHonoured);
  expect_text(fields, "hidden_activation", {"gelu_pytorch_tanh"});
  expect_false(fields, "use_bidirectional_attention");
  const DecoderSizes sizes = parse_sizes(fields, {.vocab_size = 262'208,
                                                  .max_seq_len = 131'072,
                                                  .tied = true,
                                                  .n_kv_heads = 4,
                                                  .head_dim = 256});
  const std::vector<std::size_t> windows = windows_of(fields, sizes.n_layers);
  GemmaLayer layer;
  layer.scale = gemma_attention_scale(fields);
  layer.bias = fields.flag_or("attention_bias", false);
  layer.qk_norm = true;

  Plan plan;
  DecoderWriter w("gemma3_text", sizes, plan, {.norm_plus = kGemmaNormPlus});
  const FrequenciesId global = w.frequencies(rope_of(fields, sizes.max_seq_len, false));
  const FrequenciesId local = w.frequencies(rope_of(fields, sizes.max_seq_len, true));
  w.embedding(gemma_embedding_scale(sizes));
  for (std::size_t i = 0; i < sizes.n_layers; ++i) {
    layer.window = windows[i];
    layer.rope = windows[i] == 0 ? global : local;
    gemma_layer(w, i, layer, sizes);
  }
  w.logits();
  return plan;
}

constexpr std::string_view kModelTypes[] = {"gemma3_text"};

}  // namespace

extern const Architecture architecture_gemma3;
constinit const Architecture architecture_gemma3 = {kModelTypes, gemma3_plan};

}  // namespace stagecraft
