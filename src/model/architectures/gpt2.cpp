// GPT-2 (Radford et al. 2019). Differences from Llama: positions are a learned table that is added
// to the embedding, norms are LayerNorm, every linear has a bias, and the feed-forward block has no
// gate. Matrices are stored transposed, and q, k and v as one matrix.
#include <array>

#include "model/architectures/architectures.h"
#include "model/config_extensions.h"
#include "model/decoder_writer.h"

namespace stagecraft {
namespace {

constexpr SizeNames kGpt2Names = {.dim = "n_embd",
                                  .ffn_dim = "n_inner",
                                  .n_layers = "n_layer",
                                  .n_heads = "n_head",
                                  .max_seq_len = "n_positions",
                                  .norm_eps = "layer_norm_epsilon"};
// transformers accepts these as other names for the fields above; the one that comes last in the
// file counts.
constexpr std::array<std::string_view, 5> kOtherNames = {"hidden_size", "max_position_embeddings",
                                                         "num_attention_heads", "num_hidden_layers",
                                                         "num_key_value_heads"};

Plan gpt2_plan(const ConfigFields& fields) {
  refuse_foreign_arithmetic(fields, {"scale_attn_weights", "scale_attn_by_inverse_layer_idx"});
  expect_absent(fields, kOtherNames, "none (GPT-2's own fields are 'n_embd', ...)");
  expect_false(fields, "add_cross_attention");
  const DecoderSizes sizes = parse_sizes(fields,
                                         {.vocab_size = 50'257,
                                          .max_seq_len = 1024,
                                          .tied = true,
                                          .norm_eps = 1e-5,
                                          .ffn_factor = 4,
                                          .has_rope = false},
                                         kGpt2Names);
  const auto function = parse_activation(fields, "activation_function", "gelu_new");
  const bool scaled = fields.flag_or("scale_attn_weights", true);
  const bool by_layer = fields.flag_or("scale_attn_by_inverse_layer_idx", false);
  // Conv1D stores [inputs, outputs]. q, k and v are columns of one matrix, except with kQkvApart.
  const bool apart = fields.flag_or(kQkvApart, false);
  const Storage transposed{.transposed = !apart};

  Plan plan;
  plan.optional_prefix = "transformer.";
  plan.unused = {".attn.bias", ".attn.masked_bias"};  // causal masks, in the first files
  DecoderWriter w("gpt2", sizes, plan,
                  DecoderStyle{.norm = NormStep::Kind::Layer,
                               .gated = false,
                               .embedding = "transformer.wte",
                               .layers = "transformer.h.",
                               .final_norm = "transformer.ln_f",
                               .qkv_apart = apart});
  w.embedding_with_positions("transformer.wpe");
  for (std::size_t i = 0; i < sizes.n_layers; ++i) {
    const std::string at = w.layer(i);
    const float scale =
        (scaled ? sizes.score_scale() : 1.0f) / (by_layer ? static_cast<float>(i + 1) : 1.0f);
    w.norm("attn_norm", w.n, w.x, at + "ln_1");
    w.stacked_qkv(w.n, at + "attn.c_attn", true, !apart);
    w.attention(scale);
    w.linear("attn_proj", w.o, w.a, at + "attn.c_proj", true, transposed);
    w.add("attn_residual");

    w.norm("mlp_norm", w.n, w.x, at + "ln_2");
    w.mlp(w.n, at + "mlp.c_fc", at + "mlp.c_proj", function, true, transposed);
    w.add("mlp_residual");
  }
  w.logits();
  return plan;
}

constexpr std::string_view kGpt2Types[] = {"gpt2"};

}  // namespace

extern const Architecture architecture_gpt2;
constinit const Architecture architecture_gpt2 = {kGpt2Types, gpt2_plan};

}  // namespace stagecraft
