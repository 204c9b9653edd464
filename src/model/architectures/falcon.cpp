// Falcon (Almazrouei et al. 2023), three generations of one model type. Differences from GPT-NeoX:
//   falcon-rw         ALiBi, or RoPE of whole heads; the halves of a layer follow each other
//   falcon-7b         all queries share one key head; one norm per layer serves both halves
//   falcon-40b, 180b  groups of queries share a key head; one norm per half, or one for both
#include "model/architectures/architectures.h"
#include "model/config_extensions.h"
#include "model/decoder_writer.h"
#include "operators/float_to_half.h"
#include "operators/half_to_float.h"

namespace stagecraft {
namespace {

enum class Norms { One, Two, InTurn };  // per layer; InTurn: the second reads x after attention

// An absent flag is `default_value`; null is false, as in transformers.
bool flag(const ConfigFields& fields, std::string_view key, bool default_value) {
  return !fields.is_null(key) && fields.flag_or(key, default_value);
}

Norms parse_norms(const ConfigFields& fields, bool newer) {
  const bool parallel = flag(fields, "parallel_attn", true);
  if (newer && !parallel) {
    throw Error("{}: 'parallel_attn': expected true with 'new_decoder_architecture', found false",
                fields.where());
  }
  const std::size_t norms = fields.size_or("num_ln_in_parallel_attn", newer ? 2 : 1);
  if (norms > (newer ? 2 : 1)) {
    throw Error("{}: 'num_ln_in_parallel_attn': expected {}, found {}", fields.where(),
                newer ? "1 or 2" : "1", norms);
  }
  if (!parallel) return Norms::InTurn;
  return norms == 2 ? Norms::Two : Norms::One;
}

DecoderSizes falcon_sizes(const ConfigFields& fields, bool newer) {
  const bool one_key = !newer && flag(fields, "multi_query", true);
  expect_absent(fields, kSetByHeads, "none (Falcon's own field is 'num_kv_heads')");
  const DecoderSizes sizes = parse_sizes(fields,
                                         {.vocab_size = 65'024,
                                          .max_seq_len = 2048,
                                          .tied = true,
                                          .norm_eps = 1e-5,
                                          .n_kv_heads = one_key ? std::size_t{1} : 0,
                                          .ffn_factor = 4,
                                          .has_rope = !flag(fields, "alibi", false)},
                                         {.dim = either_name(fields, "hidden_size", "n_embed"),
                                          .ffn_dim = "ffn_hidden_size",
                                          .n_kv_heads = one_key ? "" : "num_kv_heads",
                                          .norm_eps = "layer_norm_epsilon"});
  if (!newer && !one_key && sizes.n_kv_heads != sizes.n_heads) {
    throw Error("{}: 'num_kv_heads': expected {}, one per head, found {}", fields.where(),
                sizes.n_heads, sizes.n_kv_heads);
  }
  return sizes;
}

// ALiBi is added before scores are scaled, so the slopes are scaled too. transformers rounds slopes
// to bf16.
std::vector<float> falcon_slopes(std::size_t n_heads, float scale) {
  std::vector<float> slopes = alibi_slopes(n_heads);
  std::vector<std::uint16_t> rounded(n_heads);
  f32_to_bf16(slopes, rounded);
  bf16_to_f32(rounded, slopes);
  for (float& slope : slopes) slope *= scale;
  return slopes;
}

Plan falcon_plan(const ConfigFields& fields) {
  refuse_foreign_arithmetic(fields, {"alibi", "parallel_attn", "num_ln_in_parallel_attn"});
  const bool newer = flag(fields, "new_decoder_architecture", false);
  const DecoderSizes sizes = falcon_sizes(fields, newer);
  const Norms norms = parse_norms(fields, newer);
  const auto function = parse_activation(fields, "activation", "gelu");
  const bool bias = flag(fields, "bias", false), alibi = flag(fields, "alibi", false);
  const float scale = sizes.score_scale();
  const std::vector<float> slopes =
      alibi ? falcon_slopes(sizes.n_heads, scale) : std::vector<float>();
  const std::string first = norms == Norms::Two ? "ln_attn" : "input_layernorm";

  Plan plan;
  plan.optional_prefix = "transformer.";
  DecoderWriter w("falcon", sizes, plan,
                  DecoderStyle{.norm = NormStep::Kind::Layer,
                               .gated = false,
                               .embedding = "transformer.word_embeddings",
                               .layers = "transformer.h.",
                               .final_norm = "transformer.ln_f",
                               .qkv_apart = fields.flag_or(kQkvApart, false)});
  const RopeConfig angles = parse_rope(fields, sizes.max_seq_len);
  const FrequenciesId rope = alibi ? kNone : w.frequencies(angles);
  w.embedding();
  for (std::size_t i = 0; i < sizes.n_layers; ++i) {
    const std::string at = w.layer(i), self = at + "self_attention.";
    w.norm("attn_norm", w.n, w.x, at + first);
    w.fused_qkv(w.n, self + "query_key_value", bias);
    if (!alibi) w.rope(rope);
    w.attention(scale, 0, 0.0f, slopes);
    if (norms == Norms::Two) w.norm("mlp_norm", w.n, w.x, at + "ln_mlp");
    w.linear("attn_proj", w.o, w.a, self + "dense", bias);
    w.add("attn_residual");

    if (norms == Norms::InTurn) w.norm("mlp_norm", w.n, w.x, at + "post_attention_layernorm");
    w.mlp(w.n, at + "mlp.dense_h_to_4h", at + "mlp.dense_4h_to_h", function, bias);
    w.add("mlp_residual");
  }
  w.logits();
  return plan;
}

constexpr std::string_view kFalconTypes[] = {"falcon"};

}  // namespace

extern const Architecture architecture_falcon;
constinit const Architecture architecture_falcon = {kFalconTypes, falcon_plan};

}  // namespace stagecraft
