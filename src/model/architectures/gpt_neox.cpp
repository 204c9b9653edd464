// GPT-NeoX (Black et al. 2022) and Pythia. Differences from Llama: norms are LayerNorm, both halves
// of a layer read the same x, RoPE rotates the first columns of each head, the feed-forward block
// has no gate, and q, k and v are stored head by head in one matrix.
#include "model/architectures/architectures.h"
#include "model/config_extensions.h"
#include "model/decoder_writer.h"
#include "model/rope_fields.h"

namespace stagecraft {
namespace {

Plan gpt_neox_plan(const ConfigFields& fields) {
  refuse_foreign_arithmetic(fields, {"rotary_pct", "rotary_emb_base", "use_parallel_residual"});
  const DecoderSizes sizes =
      parse_sizes(fields, {.vocab_size = 50'432, .max_seq_len = 2048, .norm_eps = 1e-5},
                  {.norm_eps = "layer_norm_eps"});
  expect_absent(fields, kSetByHeads, "none (the head size is hidden_size / num_attention_heads)");
  const auto function = parse_activation(fields, "hidden_act", "gelu");
  const bool bias = fields.flag_or("attention_bias", true);
  const bool parallel = fields.flag_or("use_parallel_residual", true);
  const PartialRope partial = parse_partial_rope(fields, sizes.max_seq_len, sizes.head_dim,
                                                 {"rotary_pct", 0.25, "rotary_emb_base"});
  const float scale = sizes.score_scale();

  Plan plan;
  plan.unused = {".attention.bias", ".attention.masked_bias"};  // causal masks, in older files
  DecoderWriter w("gpt_neox", sizes, plan,
                  DecoderStyle{.norm = NormStep::Kind::Layer,
                               .gated = false,
                               .embedding = "gpt_neox.embed_in",
                               .layers = "gpt_neox.layers.",
                               .final_norm = "gpt_neox.final_layer_norm",
                               .head = "embed_out",
                               .qkv_apart = fields.flag_or(kQkvApart, false)});
  const FrequenciesId rope = w.frequencies(partial.rope, partial.columns);
  w.embedding();
  for (std::size_t i = 0; i < sizes.n_layers; ++i) {
    const std::string at = w.layer(i);
    w.norm("attn_norm", w.n, w.x, at + "input_layernorm");
    w.fused_qkv(w.n, at + "attention.query_key_value", bias);
    w.rope(rope);
    w.attention(scale);
    // Parallel: the feed-forward block reads x before the result of attention is added.
    if (parallel) w.norm("mlp_norm", w.n, w.x, at + "post_attention_layernorm");
    w.linear("attn_proj", w.o, w.a, at + "attention.dense", bias);
    w.add("attn_residual");

    if (!parallel) w.norm("mlp_norm", w.n, w.x, at + "post_attention_layernorm");
    w.mlp(w.n, at + "mlp.dense_h_to_4h", at + "mlp.dense_4h_to_h", function, true);
    w.add("mlp_residual");
  }
  w.logits();
  return plan;
}

constexpr std::string_view kGptNeoxTypes[] = {"gpt_neox"};

}  // namespace

extern const Architecture architecture_gpt_neox;
constinit const Architecture architecture_gpt_neox = {kGptNeoxTypes, gpt_neox_plan};

}  // namespace stagecraft
