// Mixtral (Jiang et al. 2024). Difference from Mistral: the feed-forward block of each layer
// consists of several experts, and each row goes to a few of them.
#include "model/architectures/architectures.h"
#include "model/architectures/experts_common.h"
#include "model/config_extensions.h"

namespace stagecraft {
namespace {

Plan mixtral_plan(const ConfigFields& fields) {
  refuse_foreign_arithmetic(fields, {"num_local_experts", "num_experts", "num_experts_per_tok"});
  const std::size_t kv_heads = fields.is_null("num_key_value_heads") ? 0 : 8;
  const DecoderSizes sizes = parse_sizes(
      fields,
      {.vocab_size = 32'000, .max_seq_len = 131'072, .norm_eps = 1e-5, .n_kv_heads = kv_heads});
  const auto function = parse_activation(fields, "hidden_act", "silu");
  ExpertSizes experts = parse_experts(
      fields, sizes.n_layers, {.n = 8, .n_chosen = 2},
      {.n = either_name(fields, "num_local_experts", "num_experts"), .width = "intermediate_size"});
  experts.normed = true;
  const std::size_t window = fields.size_or("sliding_window", 0);

  Plan plan;
  DecoderWriter w("mixtral", sizes, plan, {.gated = false});
  const BufferId routing_weights = w.buffer("r", experts.n);
  const FrequenciesId rope = w.frequencies(parse_rope(fields, sizes.max_seq_len, 1'000'000.0));
  w.embedding();
  for (std::size_t i = 0; i < sizes.n_layers; ++i) {
    const std::string at = w.layer(i), self = at + "self_attn.", block = at + "block_sparse_moe.";
    w.norm("attn_norm", w.n, w.x, at + "input_layernorm");
    w.qkv(w.n, self, false);
    w.rope(rope);
    w.attention(sizes.score_scale(), window);
    w.linear("attn_proj", w.o, w.a, self + "o_proj");
    w.add("attn_residual");

    w.norm("mlp_norm", w.n, w.x, at + "post_attention_layernorm");
    write_experts(w, experts, routing_weights,
                  {block + "gate", block + "experts.", "w1", "w3", "w2"}, function);
    w.add("mlp_residual");
  }
  w.logits();
  return plan;
}

constexpr std::string_view kMixtralTypes[] = {"mixtral"};

}  // namespace

extern const Architecture architecture_mixtral;
constinit const Architecture architecture_mixtral = {kMixtralTypes, mixtral_plan};

}  // namespace stagecraft
