// BLOOM (BigScience 2022). Differences from GPT-NeoX: ALiBi instead of RoPE, whose bias grows with
// the distance of a key; the embedding is normed; the two halves of a layer are computed one after
// the other.
#include "model/architectures/architectures.h"
#include "model/config_extensions.h"
#include "model/decoder_writer.h"

namespace stagecraft {
namespace {

DecoderSizes bloom_sizes(const ConfigFields& fields) {
  const SizeNames names = {.dim = either_name(fields, "hidden_size", "n_embed"),
                           .ffn_dim = "n_inner",
                           .n_layers = either_name(fields, "n_layer", "num_hidden_layers"),
                           .n_heads = either_name(fields, "n_head", "num_attention_heads"),
                           .max_seq_len = "seq_length",
                           .norm_eps = "layer_norm_epsilon"};
  expect_absent(fields, kSetByHeads, "none (the head size is hidden_size / n_head)");
  const DecoderSizes sizes = parse_sizes(fields,
                                         {.vocab_size = 250'880,
                                          .max_seq_len = 2048,
                                          .tied = true,
                                          .norm_eps = 1e-5,
                                          .ffn_factor = 4,
                                          .has_rope = false},
                                         names);
  if (sizes.ffn_dim != 4 * sizes.dim) {
    throw Error("{}: 'n_inner': expected 4 * '{}' = {}, found {}", fields.where(), names.dim,
                4 * sizes.dim, sizes.ffn_dim);
  }
  return sizes;
}

Plan bloom_plan(const ConfigFields& fields) {
  // Files contain "offset_alibi", but transformers does not read it.
  refuse_foreign_arithmetic(fields, {"apply_residual_connection_post_layernorm", "offset_alibi"});
  const DecoderSizes sizes = bloom_sizes(fields);
  // With both fields, transformers adds partial sums and leaves out the biases.
  if (fields.size_or("pretraining_tp", 1) > 1) expect_false(fields, "slow_but_exact");
  // Whether the result of a block is added to x as it was, or to the norm of x.
  const bool add_to_normed = fields.flag_or("apply_residual_connection_post_layernorm", false);
  const float scale = sizes.score_scale();
  const std::vector<float> slopes = alibi_slopes(sizes.n_heads);

  Plan plan;
  plan.optional_prefix = "transformer.";
  DecoderWriter w("bloom", sizes, plan,
                  DecoderStyle{.norm = NormStep::Kind::Layer,
                               .gated = false,
                               .embedding = "transformer.word_embeddings",
                               .layers = "transformer.h.",
                               .final_norm = "transformer.ln_f",
                               .qkv_apart = fields.flag_or(kQkvApart, false)});
  w.embedding();
  w.norm("embedding_norm", w.x, w.x, "transformer.word_embeddings_layernorm");
  const BufferId normed = add_to_normed ? w.x : w.n;
  for (std::size_t i = 0; i < sizes.n_layers; ++i) {
    const std::string at = w.layer(i), self = at + "self_attention.";
    w.norm("attn_norm", normed, w.x, at + "input_layernorm");
    w.fused_qkv(normed, self + "query_key_value", true);
    w.attention(scale, 0, 0.0f, slopes);
    w.linear("attn_proj", w.o, w.a, self + "dense", true);
    w.add("attn_residual");

    w.norm("mlp_norm", normed, w.x, at + "post_attention_layernorm");
    w.mlp(normed, at + "mlp.dense_h_to_4h", at + "mlp.dense_4h_to_h",
          ActivateStep::Function::GeluTanh, true);
    w.add("mlp_residual");
  }
  w.logits();
  return plan;
}

constexpr std::string_view kBloomTypes[] = {"bloom"};

}  // namespace

extern const Architecture architecture_bloom;
constinit const Architecture architecture_bloom = {kBloomTypes, bloom_plan};

}  // namespace stagecraft
