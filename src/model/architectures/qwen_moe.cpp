// Qwen2-MoE (Qwen Team 2024) and Qwen3-MoE (Yang et al. 2025). Differences from Qwen2 and Qwen3:
// some layers have experts instead of one feed-forward block. Qwen2-MoE also has a shared expert,
// which computes every row. A gate per row scales its result.

#include "model/architectures/architectures.h"
#include "model/architectures/experts_common.h"
#include "model/config_extensions.h"
#include "model/layer_fields.h"

namespace stagecraft {
namespace {

// The properties in which the two differ.
struct QwenMoe {
  DecoderSizes sizes;
  ExpertSizes experts;
  std::size_t shared_width = 0;  // width of the shared expert; 0: no shared expert
  bool qkv_bias = false, o_bias = false;
  bool head_norms = false;           // norms of each head of q and k
  std::vector<std::size_t> windows;  // as parse_windows
};

// Every second layer has a window, up to layer max_window_layers.
std::vector<std::size_t> qwen2_windows(const ConfigFields& fields, std::size_t n_layers) {
  const std::size_t window = fields.flag_or("use_sliding_window", false) ? parse_window(fields) : 0;
  const std::size_t last = parse_max_window_layers(fields);
  return parse_sliding_layers(fields, n_layers, window,
                              [&](std::size_t i) { return i < last && i % 2 == 0; });
}

// The steps of the shared expert: x += sigmoid(its gate) * its result.
void shared_expert(DecoderWriter& w, const std::string& mlp, std::size_t width,
                   BufferId routing_weight, ActivateStep::Function function) {
  const std::string at = mlp + "shared_expert.";
  w.route("shared_", w.n, mlp + "shared_expert_gate",
          {.x = routing_weight, .n_chosen = 1, .score = RouteStep::Score::Sigmoid});
  const auto expert = w.expert(w.n, w.o, width, at + "gate_proj", at + "up_proj", at + "down_proj");
  w.step("shared_expert", ExpertsStep{w.o, w.n, routing_weight, {expert}, function});
  w.add("shared_residual");
}

Plan qwen_moe_plan(const ConfigFields& fields, const char* model_type, const QwenMoe& model) {
  const DecoderSizes& sizes = model.sizes;
  const auto function = parse_activation(fields, "hidden_act", "silu");
  const std::vector<bool> has_experts = parse_expert_layers(fields, sizes.n_layers);

  Plan plan;
  DecoderWriter w(model_type, sizes, plan);
  const BufferId routing_weights = w.buffer("r", model.experts.n);
  const BufferId shared = model.shared_width == 0 ? kNone : w.buffer("s", 1);
  const RopeConfig angles = parse_rope(fields, sizes.max_seq_len, 10'000.0, kYarn);
  const float scale = sizes.score_scale(angles);
  const FrequenciesId rope = w.frequencies(angles);
  w.embedding();
  for (std::size_t i = 0; i < sizes.n_layers; ++i) {
    const std::string at = w.layer(i), self = at + "self_attn.", mlp = at + "mlp.";
    w.norm("attn_norm", w.n, w.x, at + "input_layernorm");
    w.qkv(w.n, self, model.qkv_bias);
    if (model.head_norms) w.head_norms(self);
    w.rope(rope);
    w.attention(scale, model.windows[i]);
    w.linear("attn_proj", w.o, w.a, self + "o_proj", model.o_bias);
    w.add("attn_residual");

    w.norm("mlp_norm", w.n, w.x, at + "post_attention_layernorm");
    if (has_experts[i]) {
      write_experts(w, model.experts, routing_weights, {mlp + "gate", mlp + "experts."}, function);
      w.add("mlp_residual");
      if (shared != kNone) shared_expert(w, mlp, model.shared_width, shared, function);
    } else {
      w.gate(w.n, mlp, function);
      w.linear("down", w.o, w.g, mlp + "down_proj");
      w.add("mlp_residual");
    }
  }
  w.logits();
  return plan;
}

void refuse_what_differs_from_qwen_moe(const ConfigFields& fields) {
  refuse_foreign_arithmetic(
      fields, {"num_experts", "num_local_experts", "num_experts_per_tok", "moe_intermediate_size",
               "shared_expert_intermediate_size", "use_qk_norm"});
}

Plan qwen2_moe_plan(const ConfigFields& fields) {
  refuse_what_differs_from_qwen_moe(fields);
  expect_false(fields, "use_qk_norm");
  QwenMoe model;
  model.sizes =
      parse_sizes(fields, {.vocab_size = 151'936, .max_seq_len = 32'768, .n_kv_heads = 16});
  model.experts =
      parse_experts(fields, model.sizes.n_layers, {.n = 60, .n_chosen = 4, .width = 1408});
  model.shared_width = fields.size_or("shared_expert_intermediate_size", 5632);
  model.qkv_bias = fields.flag_or("qkv_bias", true);
  model.windows = qwen2_windows(fields, model.sizes.n_layers);
  return qwen_moe_plan(fields, "qwen2_moe", model);
}

Plan qwen3_moe_plan(const ConfigFields& fields) {
  refuse_what_differs_from_qwen_moe(fields);
  expect_true(fields, "use_qk_norm");  // files of Qwen3-Coder have it
  QwenMoe model;
  model.sizes =
      parse_sizes(fields, {.vocab_size = 151'936, .max_seq_len = 32'768, .n_kv_heads = 4});
  model.experts =
      parse_experts(fields, model.sizes.n_layers, {.n = 128, .n_chosen = 8, .width = 768},
                    {.n = either_name(fields, "num_experts", "num_local_experts")});
  model.qkv_bias = model.o_bias = fields.flag_or("attention_bias", false);
  model.head_norms = true;
  const bool slides =
      fields.flag_or("use_sliding_window", false) && !fields.is_null("sliding_window");
  model.windows.assign(model.sizes.n_layers, slides ? parse_window(fields) : 0);
  return qwen_moe_plan(fields, "qwen3_moe", model);
}

Plan plan_of_type(const ConfigFields& fields) {
  const bool second = fields.text_or("model_type", "") == "qwen2_moe";
  return second ? qwen2_moe_plan(fields) : qwen3_moe_plan(fields);
}

constexpr std::string_view kQwenMoeTypes[] = {"qwen2_moe", "qwen3_moe"};

}  // namespace

extern const Architecture architecture_qwen_moe;
constinit const Architecture architecture_qwen_moe = {kQwenMoeTypes, plan_of_type};

}  // namespace stagecraft
