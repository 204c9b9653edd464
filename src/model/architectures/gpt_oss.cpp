// gpt-oss (OpenAI 2025). Differences from Mixtral: softmax of attention has a sink per head, every
// other layer has a window, RoPE is stretched (yarn), linears and experts have biases, and SwiGLU
// is clamped.

#include "model/architectures/architectures.h"
#include "model/architectures/experts_common.h"
#include "model/config_extensions.h"
#include "model/layer_fields.h"
#include "model/rope_fields.h"

namespace stagecraft {
namespace {

constexpr std::string_view kApart = "stored_experts_apart";  // kStoredFields
constexpr double kMaxLimit = 1e6;
constexpr std::size_t kSlidingWindow = 128, kSlidingPattern = 2;

RopeConfig rope_of(const ConfigFields& fields, std::size_t max_seq_len) {
  if (rope_object(fields)) return parse_rope(fields, max_seq_len, 150'000.0, kYarn);
  throw Error("{}: 'rope_scaling': expected an object, found none", fields.where());
}

// The experts of a layer. Two tensors [experts, inputs, outputs] hold all of them; in the first
// one, the outputs of gate and up alternate. With kApart, each expert has three tensors of its own.
struct GptOssExperts {
  ExpertSizes sizes;
  bool apart = false;
  float limit = 0.0f, alpha = 0.0f;
  BufferId routing_weights = kNone;
};

ExpertsStep::Expert expert_apart(DecoderWriter& w, std::size_t dim, std::size_t width,
                                 const std::string& at) {
  return {.gate = w.weight({at + "gate_proj.weight", {width, dim}}),
          .up = w.weight({at + "up_proj.weight", {width, dim}}),
          .down = w.weight({at + "down_proj.weight", {dim, width}}),
          .gate_bias = w.weight({at + "gate_proj.bias", {width}}),
          .up_bias = w.weight({at + "up_proj.bias", {width}}),
          .down_bias = w.weight({at + "down_proj.bias", {dim}})};
}

ExpertsStep::Expert expert(DecoderWriter& w, std::size_t dim, const GptOssExperts& experts,
                           const std::string& at, std::size_t index) {
  const std::size_t width = experts.sizes.width;
  if (experts.apart) return expert_apart(w, dim, width, fmt::format("{}{}.", at, index));
  const auto stored = [&](const std::string& name, std::vector<std::size_t> shape) {
    Weight one{at + name, std::move(shape)};
    one.stored = {.transposed = one.is_matrix(), .slice = index, .of_slices = experts.sizes.n};
    return one;
  };
  const auto every_other = [&](Weight one, std::size_t first) {
    one.stored.first_row = first;
    one.stored.of_rows = 2 * width;
    one.stored.row_block = 1;
    one.stored.row_stride = 2;
    return w.weight(std::move(one));
  };
  const Weight both = stored("gate_up_proj", {width, dim});
  const Weight both_biases = stored("gate_up_proj_bias", {width});
  return {.gate = every_other(both, 0),
          .up = every_other(both, 1),
          .down = w.weight(stored("down_proj", {dim, width})),
          .gate_bias = every_other(both_biases, 0),
          .up_bias = every_other(both_biases, 1),
          .down_bias = w.weight(stored("down_proj_bias", {dim}))};
}

void write_experts(DecoderWriter& w, std::size_t dim, const GptOssExperts& experts,
                   const std::string& mlp) {
  // transformers computes softmax over the chosen scores only. This equals softmax over all scores
  // if the chosen routing weights are then divided by their sum.
  w.route("", w.n, mlp + "router",
          {.x = experts.routing_weights, .n_chosen = experts.sizes.n_chosen, .normed = true}, true);
  ExpertsStep step{w.o, w.n, experts.routing_weights, {}};
  step.limit = experts.limit;
  step.alpha = experts.alpha;
  for (std::size_t i = 0; i < experts.sizes.n; ++i) {
    step.experts.push_back(expert(w, dim, experts, mlp + "experts.", i));
  }
  w.step("experts", std::move(step));
}

Plan gpt_oss_plan(const ConfigFields& fields) {
  refuse_foreign_arithmetic(fields, {"num_local_experts", "num_experts", "num_experts_per_tok",
                                     "experts_per_token", kApart});
  const DecoderSizes sizes = parse_sizes(fields, {.vocab_size = 201'088,
                                                  .max_seq_len = 131'072,
                                                  .norm_eps = 1e-5,
                                                  .n_kv_heads = 8,
                                                  .head_dim = 64});
  expect_text(fields, "hidden_act", {"silu", "swish"});
  GptOssExperts experts;
  experts.sizes =
      parse_experts(fields, sizes.n_layers, {.n = 128, .n_chosen = 4},
                    {.n = either_name(fields, "num_local_experts", "num_experts"),
                     .n_chosen = either_name(fields, "num_experts_per_tok", "experts_per_token"),
                     .width = "intermediate_size"});
  experts.limit = static_cast<float>(fields.number_or("swiglu_limit", 7.0, 1e-3, kMaxLimit));
  experts.alpha = static_cast<float>(fields.number_or("swiglu_alpha", 1.702, 1e-3, kMaxLimit));
  experts.apart = fields.flag_or(kApart, false);
  const bool bias = fields.flag_or("attention_bias", true);
  const std::vector<std::size_t> windows =
      parse_window_pattern(fields, sizes.n_layers, kSlidingPattern, kSlidingWindow);
  const RopeConfig rope = rope_of(fields, sizes.max_seq_len);

  Plan plan;
  DecoderWriter w("gpt_oss", sizes, plan, {.gated = false});
  experts.routing_weights = w.buffer("r", experts.sizes.n);
  const FrequenciesId frequencies = w.frequencies(rope);
  w.embedding();
  for (std::size_t i = 0; i < sizes.n_layers; ++i) {
    const std::string at = w.layer(i), self = at + "self_attn.";
    w.norm("attn_norm", w.n, w.x, at + "input_layernorm");
    w.qkv(w.n, self, bias);
    w.rope(frequencies);
    w.attention(sizes.score_scale(rope), windows[i], 0.0f, {},
                w.weight({self + "sinks", {sizes.n_heads}}));
    w.linear("attn_proj", w.o, w.a, self + "o_proj", bias);
    w.add("attn_residual");

    w.norm("mlp_norm", w.n, w.x, at + "post_attention_layernorm");
    write_experts(w, sizes.dim, experts, at + "mlp.");
    w.add("mlp_residual");
  }
  w.logits();
  return plan;
}

constexpr std::string_view kGptOssTypes[] = {"gpt_oss"};

}  // namespace

extern const Architecture architecture_gpt_oss;
constinit const Architecture architecture_gpt_oss = {kGptOssTypes, gpt_oss_plan};

}  // namespace stagecraft
