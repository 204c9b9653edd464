// GPT-J (Wang and Komatsuzaki 2021). Differences from GPT-2: one LayerNorm per layer, and both
// attention and the feed-forward block read its result; RoPE of pairs of neighbouring columns
// instead of learned positions; no biases in attention, but a bias in the head.
#include <array>

#include "model/architectures/architectures.h"
#include "model/config_extensions.h"
#include "model/decoder_writer.h"

namespace stagecraft {
namespace {

constexpr std::array<std::string_view, 3> kRopeFields = {"rope_theta", "rope_scaling",
                                                         "rope_parameters"};

DecoderSizes gptj_sizes(const ConfigFields& fields) {
  expect_absent(fields, kSetByHeads, "none (the head size is n_embd / n_head)");
  return parse_sizes(fields,
                     {.vocab_size = 50'400, .max_seq_len = 2048, .norm_eps = 1e-5, .ffn_factor = 4},
                     {.dim = either_name(fields, "n_embd", "hidden_size"),
                      .ffn_dim = "n_inner",
                      .n_layers = either_name(fields, "n_layer", "num_hidden_layers"),
                      .n_heads = either_name(fields, "n_head", "num_attention_heads"),
                      .max_seq_len = either_name(fields, "n_positions", "max_position_embeddings"),
                      .norm_eps = "layer_norm_epsilon"});
}

std::size_t rotated_columns(const ConfigFields& fields, std::size_t head_dim) {
  const std::size_t columns = fields.size_or("rotary_dim", 64);
  if (columns <= head_dim && columns % 2 == 0) return columns;
  throw Error("{}: 'rotary_dim': expected an even number up to the head's {} columns, found {}",
              fields.where(), head_dim, columns);
}

Plan gptj_plan(const ConfigFields& fields) {
  // Files contain the last two fields, but transformers does not read them.
  refuse_foreign_arithmetic(fields, {"rotary_dim", "rotary", "scale_attn_weights"});
  expect_true(fields, "rotary");
  expect_true(fields, "scale_attn_weights");
  expect_absent(fields, kRopeFields, "none (theta 10000)");
  const DecoderSizes sizes = gptj_sizes(fields);
  const std::size_t columns = rotated_columns(fields, sizes.head_dim);
  const auto function = parse_activation(fields, "activation_function", "gelu_new");
  const float scale = sizes.score_scale();

  Plan plan;
  plan.optional_prefix = "transformer.";
  plan.unused = {".attn.bias", ".attn.masked_bias"};  // causal masks, in the first files
  DecoderWriter w("gptj", sizes, plan,
                  DecoderStyle{.norm = NormStep::Kind::Layer,
                               .gated = false,
                               .head_bias = true,
                               .pairs = RopeStep::Pairs::Neighbours,
                               .embedding = "transformer.wte",
                               .layers = "transformer.h.",
                               .final_norm = "transformer.ln_f"});
  const FrequenciesId rope = w.frequencies(RopeConfig{}, columns);
  w.embedding();
  for (std::size_t i = 0; i < sizes.n_layers; ++i) {
    const std::string at = w.layer(i);
    w.norm("norm", w.n, w.x, at + "ln_1");
    w.qkv(w.n, at + "attn.", false);
    w.rope(rope);
    w.attention(scale);
    w.linear("attn_proj", w.o, w.a, at + "attn.out_proj");
    w.add("attn_residual");

    w.mlp(w.n, at + "mlp.fc_in", at + "mlp.fc_out", function, true);
    w.add("mlp_residual");
  }
  w.logits();
  return plan;
}

constexpr std::string_view kGptjTypes[] = {"gptj"};

}  // namespace

extern const Architecture architecture_gptj;
constinit const Architecture architecture_gptj = {kGptjTypes, gptj_plan};

}  // namespace stagecraft
