// Phi 1, 1.5 and 2 (Gunasekar et al. 2023). Differences from Llama: one LayerNorm per layer, and
// both attention and the feed-forward block read its result; RoPE rotates the first columns of each
// head; no gate; a bias in every linear, the head included.
#include "model/architectures/architectures.h"
#include "model/config_extensions.h"
#include "model/decoder_writer.h"
#include "model/rope_fields.h"

namespace stagecraft {
namespace {

Plan phi_plan(const ConfigFields& fields) {
  refuse_foreign_arithmetic(fields, {"partial_rotary_factor"});
  const DecoderSizes sizes =
      parse_sizes(fields, {.vocab_size = 51'200, .max_seq_len = 2048, .norm_eps = 1e-5},
                  {.norm_eps = "layer_norm_eps"});
  const auto function = parse_activation(fields, "hidden_act", "gelu_new");
  const PartialRope partial =
      parse_partial_rope(fields, sizes.max_seq_len, sizes.head_dim, {"partial_rotary_factor", 0.5});
  const float scale = sizes.score_scale();

  Plan plan;
  DecoderWriter w("phi", sizes, plan,
                  DecoderStyle{.norm = NormStep::Kind::Layer,
                               .gated = false,
                               .head_bias = true,
                               .final_norm = "model.final_layernorm"});
  const FrequenciesId rope = w.frequencies(partial.rope, partial.columns);
  w.embedding();
  for (std::size_t i = 0; i < sizes.n_layers; ++i) {
    const std::string at = w.layer(i), self = at + "self_attn.";
    w.norm("norm", w.n, w.x, at + "input_layernorm");
    w.qkv(w.n, self, true);
    w.rope(rope);
    w.attention(scale);
    w.linear("attn_proj", w.o, w.a, self + "dense", true);
    w.add("attn_residual");

    w.mlp(w.n, at + "mlp.fc1", at + "mlp.fc2", function, true);
    w.add("mlp_residual");
  }
  w.logits();
  return plan;
}

constexpr std::string_view kPhiTypes[] = {"phi"};

}  // namespace

extern const Architecture architecture_phi;
constinit const Architecture architecture_phi = {kPhiTypes, phi_plan};

}  // namespace stagecraft
