// OPT (Zhang et al. 2022). Differences from GPT-2: position i uses row i + 2 of the table of
// positions, the activation function is ReLU, and q, k and v are separate matrices. The 350M model
// has its norms after the blocks, and its embedding and head are narrower than x.
#include "model/architectures/architectures.h"
#include "model/config_extensions.h"
#include "model/decoder_writer.h"
#include "model/plan_writer.h"

namespace stagecraft {
namespace {

constexpr std::size_t kUnusedPositions = 2;  // the first rows of the table
// No field contains the eps of norms: it is the default of PyTorch.
constexpr SizeNames kOptNames = {.ffn_dim = "ffn_dim", .norm_eps = ""};

Plan opt_plan(const ConfigFields& fields) {
  refuse_foreign_arithmetic(fields);
  expect_absent(fields, kSetByHeads, "none (the head size is hidden_size / num_attention_heads)");
  const DecoderSizes sizes = parse_sizes(fields,
                                         {.vocab_size = 50'272,
                                          .max_seq_len = 2048,
                                          .tied = true,
                                          .norm_eps = 1e-5,
                                          .has_rope = false},
                                         kOptNames);
  const std::size_t table_width = fields.size_or("word_embed_proj_dim", sizes.dim);
  const auto function = parse_activation(fields, "activation_function", "relu");
  const bool bias = fields.flag_or("enable_bias", true);
  const bool norm_first = fields.flag_or("do_layer_norm_before", true);
  const bool final_norm = norm_first && !fields.flag_or("_remove_final_layer_norm", false);
  const bool narrow = table_width != sizes.dim;
  const float scale = sizes.score_scale();
  const std::string model = "model.decoder.";
  const bool norm_weights = fields.flag_or("layer_norm_elementwise_affine", true);

  Plan plan;
  plan.optional_prefix = "model.";
  DecoderWriter w("opt", sizes, plan,
                  DecoderStyle{.norm = NormStep::Kind::Layer,
                               .norm_weight = norm_weights,
                               .norm_bias = norm_weights,
                               .gated = false,
                               .embedding = model + "embed_tokens",
                               .layers = model + "layers."});
  const BufferId e = narrow ? w.buffer("e", table_width) : w.x;
  const std::string positions = model + "embed_positions";
  if (narrow) {
    w.embedding_to(e);
    const WeightId table = w.positions(positions, kUnusedPositions);
    w.step("positions", EmbedStep{w.x, kNone, 1.0f, table});
    w.linear("project_in", w.o, e, model + "project_in");
    w.add("embedding_sum");
  } else {
    w.embedding_with_positions(positions, kUnusedPositions);
  }
  for (std::size_t i = 0; i < sizes.n_layers; ++i) {
    const std::string at = w.layer(i), self = at + "self_attn.";
    // A norm comes before its block and writes n, or after the addition of the result and writes x.
    const BufferId normed = norm_first ? w.n : w.x;
    if (norm_first) w.norm("attn_norm", w.n, w.x, at + "self_attn_layer_norm");
    w.qkv(normed, self, bias);
    w.attention(scale);
    w.linear("attn_proj", w.o, w.a, self + "out_proj", bias);
    w.add("attn_residual");
    if (!norm_first) w.norm("attn_norm", w.x, w.x, at + "self_attn_layer_norm");

    if (norm_first) w.norm("mlp_norm", w.n, w.x, at + "final_layer_norm");
    w.mlp(normed, at + "fc1", at + "fc2", function, bias);
    w.add("mlp_residual");
    if (!norm_first) w.norm("mlp_norm", w.x, w.x, at + "final_layer_norm");
  }
  w.select();
  if (final_norm) w.norm("final_norm", w.n, w.x, model + "final_layer_norm");
  const BufferId last = final_norm ? w.n : w.x;
  if (narrow) w.linear("project_out", e, last, model + "project_out");
  w.head(narrow ? e : last);
  return plan;
}

constexpr std::string_view kOptTypes[] = {"opt"};

}  // namespace

extern const Architecture architecture_opt;
constinit const Architecture architecture_opt = {kOptTypes, opt_plan};

}  // namespace stagecraft
