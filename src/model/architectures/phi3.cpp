// Phi-3 (Abdin et al. 2024). Differences from Llama: q, k and v are rows of one stored matrix, and
// so are gate and up. Long-context files (rope type "longrope") and partial RoPE are refused.
#include "model/architectures/architectures.h"
#include "model/config_extensions.h"
#include "model/decoder_writer.h"
#include "model/rope_fields.h"

namespace stagecraft {
namespace {

Plan phi3_plan(const ConfigFields& fields) {
  refuse_foreign_arithmetic(fields);
  expect_text(fields, "hidden_act", {"silu", "swish"});
  const DecoderSizes sizes =
      parse_sizes(fields, {.vocab_size = 32'064, .max_seq_len = 4096, .norm_eps = 1e-5});
  const RopeConfig rope_config = parse_rope(fields, sizes.max_seq_len);
  refuse_stretched_rope(fields, rope_config);
  const std::size_t window = fields.size_or("sliding_window", 0);
  const float scale = sizes.score_scale();

  Plan plan;
  DecoderWriter w("phi3", sizes, plan);
  const FrequenciesId rope = w.frequencies(rope_config);
  w.embedding();
  for (std::size_t i = 0; i < sizes.n_layers; ++i) {
    const std::string at = w.layer(i), self = at + "self_attn.", mlp = at + "mlp.";
    w.norm("attn_norm", w.n, w.x, at + "input_layernorm");
    w.stacked_qkv(w.n, self + "qkv_proj", false);
    w.rope(rope);
    w.attention(scale, window);
    w.linear("attn_proj", w.o, w.a, self + "o_proj");
    w.add("attn_residual");

    w.norm("mlp_norm", w.n, w.x, at + "post_attention_layernorm");
    w.stacked_gate(w.n, mlp + "gate_up_proj", ActivateStep::Function::Silu);
    w.linear("down", w.o, w.g, mlp + "down_proj");
    w.add("mlp_residual");
  }
  w.logits();
  return plan;
}

constexpr std::string_view kPhi3Types[] = {"phi3"};

}  // namespace

extern const Architecture architecture_phi3;
constinit const Architecture architecture_phi3 = {kPhi3Types, phi3_plan};

}  // namespace stagecraft
