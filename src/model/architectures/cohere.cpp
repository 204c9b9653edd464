// Command R (Cohere 2024): model type "cohere". Command R7B: "cohere2", in which three of four
// layers have a window and the others have no RoPE. Differences from Llama: one LayerNorm per
// layer, without a bias, and both attention and the feed-forward block read its result; RoPE
// rotates pairs of neighbouring columns; logits are scaled; each head of q and k may be normed with
// its own weights.
#include "model/architectures/architectures.h"
#include "model/config_extensions.h"
#include "model/decoder_writer.h"
#include "model/layer_fields.h"

namespace stagecraft {
namespace {

constexpr double kFirstTheta = 500'000.0, kSecondTheta = 10'000.0, kLogitScale = 0.0625;
constexpr double kMinScale = 1e-6, kMaxScale = 1e6;

void refuse_other_blocks(const ConfigFields& fields) {
  expect_true(fields, "use_parallel_block");
  expect_true(fields, "use_gated_activation");
  expect_text(fields, "order_of_interleaved_layers", {"local_attn_first"});
  expect_text(fields, "position_embedding_type", {"rope_gptj"});
}

Plan cohere_plan(const ConfigFields& fields) {
  // The last three fields are options of Cohere's own program. The plan does not depend on them;
  // refuse_other_blocks checks two of them.
  refuse_foreign_arithmetic(fields, {"logit_scale", "use_qk_norm", "use_parallel_block",
                                     "use_parallel_embedding", "order_of_interleaved_layers"});
  refuse_other_blocks(fields);
  const DecoderSizes sizes = parse_sizes(
      fields, {.vocab_size = 256'000, .max_seq_len = 8192, .tied = true, .norm_eps = 1e-5},
      {.norm_eps = "layer_norm_eps"});
  const std::string model_type = fields.text_or("model_type", "");
  const bool second = model_type == "cohere2";
  if (second) expect_false(fields, "use_qk_norm");
  const auto function = parse_activation(fields, "hidden_act", "silu");
  const bool bias = fields.flag_or("attention_bias", false);
  const bool qk_norm = fields.flag_or("use_qk_norm", false);
  const double logit_scale = fields.number_or("logit_scale", kLogitScale, kMinScale, kMaxScale);
  const std::vector<std::size_t> windows =
      second ? parse_window_pattern(fields, sizes.n_layers,
                                    fields.size_or("sliding_window_pattern", 4))
             : std::vector<std::size_t>(sizes.n_layers);
  const float scale = sizes.score_scale();

  Plan plan;
  DecoderWriter w(
      model_type, sizes, plan,
      DecoderStyle{
          .norm = NormStep::Kind::Layer, .norm_bias = false, .pairs = RopeStep::Pairs::Neighbours});
  const FrequenciesId rope =
      w.frequencies(parse_rope(fields, sizes.max_seq_len, second ? kSecondTheta : kFirstTheta));
  w.embedding();
  for (std::size_t i = 0; i < sizes.n_layers; ++i) {
    const std::string at = w.layer(i), self = at + "self_attn.", mlp = at + "mlp.";
    w.norm("norm", w.n, w.x, at + "input_layernorm");
    w.qkv(w.n, self, bias);
    if (qk_norm) {
      w.norm_of_heads("q_norm", w.q, self + "q_norm");
      w.norm_of_heads("k_norm", w.k, self + "k_norm");
    }
    if (!second || windows[i] != 0) w.rope(rope);
    w.attention(scale, windows[i]);
    w.linear("attn_proj", w.o, w.a, self + "o_proj", bias);
    w.add("attn_residual");

    w.gate(w.n, mlp, function);
    w.linear("down", w.o, w.g, mlp + "down_proj");
    w.add("mlp_residual");
  }
  w.logits(static_cast<float>(logit_scale));
  return plan;
}

constexpr std::string_view kCohereTypes[] = {"cohere", "cohere2"};

}  // namespace

extern const Architecture architecture_cohere;
constinit const Architecture architecture_cohere = {kCohereTypes, cohere_plan};

}  // namespace stagecraft
