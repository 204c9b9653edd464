// SmolLM3 (Hugging Face 2025). Differences from Llama: every fourth layer has no RoPE (Yang et al.
// 2025), so its attention does not depend on positions.
#include "model/architectures/architectures.h"
#include "model/config_extensions.h"
#include "model/decoder_writer.h"
#include "model/layer_fields.h"

namespace stagecraft {
namespace {

// "no_rope_layers": per layer, 1 for RoPE and 0 for none. Without it, each
// "no_rope_layer_interval"th layer has none.
std::vector<bool> rope_layers(const ConfigFields& fields, std::size_t n_layers) {
  std::vector<bool> rope = every_nth_layer(n_layers, fields.size_or("no_rope_layer_interval", 4));
  rope.flip();
  const std::optional<JsonNode> list = fields.find("no_rope_layers");
  if (!list) return rope;
  if (!list->is_array() || list->size() != n_layers) {
    throw Error("{}: 'no_rope_layers': expected one number for each of {} layers, found {}",
                fields.where(), n_layers, list->describe());
  }
  std::size_t i = 0;
  for (const JsonNode element : list->elements()) {
    rope[i++] = json_size(element, fields.where(), "no_rope_layers", 0, 1) == 1;
  }
  return rope;
}

Plan smollm3_plan(const ConfigFields& fields) {
  refuse_foreign_arithmetic(fields, {"no_rope_layers", "no_rope_layer_interval"});
  expect_text(fields, "hidden_act", {"silu", "swish"});
  const DecoderSizes sizes = parse_sizes(
      fields, {.vocab_size = 128'256, .max_seq_len = 32'768, .tied = true, .n_kv_heads = 4});
  const bool attention_bias = fields.flag_or("attention_bias", false);
  const bool mlp_bias = fields.flag_or("mlp_bias", false);
  const std::vector<bool> with_rope = rope_layers(fields, sizes.n_layers);
  // By default, the layers without RoPE have the window.
  const bool slides = fields.flag_or("use_sliding_window", false) && fields.has("sliding_window");
  const std::vector<std::size_t> windows =
      parse_sliding_layers(fields, sizes.n_layers, slides ? parse_window(fields) : 0,
                           [&](std::size_t i) { return !with_rope[i]; });
  const float scale = sizes.score_scale();

  Plan plan;
  DecoderWriter w("smollm3", sizes, plan);
  const FrequenciesId rope = w.frequencies(parse_rope(fields, sizes.max_seq_len, 2'000'000.0));
  w.embedding();
  for (std::size_t i = 0; i < sizes.n_layers; ++i) {
    const std::string at = w.layer(i), self = at + "self_attn.", mlp = at + "mlp.";
    w.norm("attn_norm", w.n, w.x, at + "input_layernorm");
    w.qkv(w.n, self, attention_bias);
    if (with_rope[i]) w.rope(rope);
    w.attention(scale, windows[i]);
    w.linear("attn_proj", w.o, w.a, self + "o_proj", attention_bias);
    w.add("attn_residual");

    w.norm("mlp_norm", w.n, w.x, at + "post_attention_layernorm");
    w.gate(w.n, mlp, ActivateStep::Function::Silu, mlp_bias);
    w.linear("down", w.o, w.g, mlp + "down_proj", mlp_bias);
    w.add("mlp_residual");
  }
  w.logits();
  return plan;
}

constexpr std::string_view kSmollm3Types[] = {"smollm3"};

}  // namespace

extern const Architecture architecture_smollm3;
constinit const Architecture architecture_smollm3 = {kSmollm3Types, smollm3_plan};

}  // namespace stagecraft
