// OLMoE (Muennighoff et al. 2024). Differences from Llama: the whole rows of q and k are normed,
// all heads at once; the numbers of q, k and v may be clipped; every feed-forward block consists of
// several experts.
#include <array>

#include "model/architectures/architectures.h"
#include "model/architectures/experts_common.h"
#include "model/config_extensions.h"

namespace stagecraft {
namespace {

constexpr std::array<std::string_view, 2> kAbsent = {"head_dim", "sliding_window"};

Plan olmoe_plan(const ConfigFields& fields) {
  refuse_foreign_arithmetic(
      fields, {"clip_qkv", "num_experts", "num_local_experts", "num_experts_per_tok"});
  expect_absent(fields, kAbsent,
                "none (the head size is hidden_size / num_attention_heads, no window)");
  const DecoderSizes sizes =
      parse_sizes(fields, {.vocab_size = 50'304, .max_seq_len = 4096, .norm_eps = 1e-5});
  const auto function = parse_activation(fields, "hidden_act", "silu");
  const ExpertSizes experts = parse_experts(
      fields, sizes.n_layers, {.n = 64, .n_chosen = 8},
      {.n = either_name(fields, "num_experts", "num_local_experts"), .width = "intermediate_size"});
  const bool bias = fields.flag_or("attention_bias", false);
  const std::optional<float> limit = parse_clip_qkv(fields);

  Plan plan;
  DecoderWriter w("olmoe", sizes, plan, {.gated = false});
  const BufferId routing_weights = w.buffer("r", experts.n);
  const FrequenciesId rope = w.frequencies(parse_rope(fields, sizes.max_seq_len));
  w.embedding();
  for (std::size_t i = 0; i < sizes.n_layers; ++i) {
    const std::string at = w.layer(i), self = at + "self_attn.", mlp = at + "mlp.";
    w.norm("attn_norm", w.n, w.x, at + "input_layernorm");
    w.qkv(w.n, self, bias);
    w.norm("q_norm", w.q, w.q, self + "q_norm");
    w.norm("k_norm", w.k, w.k, self + "k_norm");
    w.clip_qkv(limit);
    w.rope(rope);
    w.attention(sizes.score_scale());
    w.linear("attn_proj", w.o, w.a, self + "o_proj", bias);
    w.add("attn_residual");

    w.norm("mlp_norm", w.n, w.x, at + "post_attention_layernorm");
    write_experts(w, experts, routing_weights, {mlp + "gate", mlp + "experts."}, function);
    w.add("mlp_residual");
  }
  w.logits();
  return plan;
}

constexpr std::string_view kOlmoeTypes[] = {"olmoe"};

}  // namespace

extern const Architecture architecture_olmoe;
constinit const Architecture architecture_olmoe = {kOlmoeTypes, olmoe_plan};

}  // namespace stagecraft
