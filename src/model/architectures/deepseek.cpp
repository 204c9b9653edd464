// DeepSeek-V2 and V3 (DeepSeek-AI 2024). Differences from Llama: attention keeps one short row per
// token, the latent, from which the keys and values of all heads are computed. There are experts
// and shared experts. V3 chooses experts by sigmoid with a bias.
#include <cmath>

#include <fmt/format.h>

#include "model/architectures/architectures.h"
#include "model/architectures/experts_common.h"
#include "model/config_extensions.h"
#include "model/rope_fields.h"

namespace stagecraft {
namespace {

// For the norms of latents: transformers uses this number and ignores "rms_norm_eps".
constexpr float kLatentEps = 1e-6f;
constexpr std::size_t kMaxPredictionLayers = 16;
constexpr std::size_t kMaxHeads = 1u << 17;  // of all layers; V3 has 7,808

// The heads of latent attention. Each query and key has a part that RoPE rotates and a part that it
// does not rotate. The rotated part of the key is the same for all heads.
struct LatentSizes {
  std::size_t n_heads = 0;
  std::size_t query = 0;          // width of the latent of queries ("q_lora_rank")
  bool has_query_latent = false;  // false: queries are computed from the row itself
  std::size_t latent = 0;         // width of the latent of keys and values ("kv_lora_rank")
  std::size_t rope = 0;   // per query and key: columns that RoPE rotates ("qk_rope_head_dim")
  std::size_t plain = 0;  // and that it does not rotate ("qk_nope_head_dim")
  std::size_t value = 0;  // columns per value ("v_head_dim")
};

struct DeepSeek {
  bool is_v3 = false;  // false: V2
  DecoderSizes sizes;
  LatentSizes latent;
  ExpertSizes experts;
  RouteGroups groups;
  float routing_scale = 1.0f;
  std::size_t shared_width = 0;         // width of the shared experts, which compute all rows
  std::size_t n_dense = 0;              // the first n_dense layers have no experts
  std::size_t n_prediction_layers = 0;  // extra layers, which predict further tokens: not read
  bool bias = false;
  bool heads_apart = false;  // each head has two tensors of its own
};

void check_at_most(const ConfigFields& fields, std::string_view key, std::size_t value,
                   std::size_t most) {
  if (value <= most) return;
  throw Error("{}: '{}': expected at most {}, found {}", fields.where(), key, most, value);
}

LatentSizes parse_latent(const ConfigFields& fields, std::size_t n_heads) {
  LatentSizes sizes;
  sizes.n_heads = n_heads;
  sizes.has_query_latent = !fields.is_null("q_lora_rank");
  sizes.query = sizes.has_query_latent ? fields.size_or("q_lora_rank", 1536) : 0;
  sizes.latent = fields.size_or("kv_lora_rank", 512);
  sizes.rope = fields.size_or("qk_rope_head_dim", 64);
  sizes.plain = fields.size_or("qk_nope_head_dim", 128);
  sizes.value = fields.size_or("v_head_dim", 128);
  const std::size_t widest = kMaxDimension / n_heads;
  check_at_most(fields, "kv_lora_rank", sizes.latent, widest / 2);
  check_at_most(fields, "qk_rope_head_dim", sizes.rope, widest / 2);
  check_at_most(fields, "qk_nope_head_dim", sizes.plain, widest / 2);
  check_at_most(fields, "v_head_dim", sizes.value, widest / 2);
  return sizes;
}

RouteGroups parse_groups(const ConfigFields& fields, bool is_v3, std::size_t n_experts) {
  if (!is_v3 && fields.text_or("topk_method", "greedy") == "greedy") return {};
  RouteGroups groups;
  groups.n = is_v3 ? fields.size_or("n_group", 8) : fields.size("n_group");
  groups.n_chosen = is_v3 ? fields.size_or("topk_group", 4) : fields.size("topk_group");
  groups.n_counted = is_v3 ? 2 : 1;
  check_at_most(fields, "n_group", groups.n, kMaxGroups);
  check_at_most(fields, "topk_group", groups.n_chosen, groups.n);
  if (n_experts % groups.n != 0 || n_experts / groups.n < groups.n_counted) {
    throw Error(
        "{}: 'n_group': expected a divisor of {} (the experts) that leaves at least {} per group, "
        "found {}",
        fields.where(), n_experts, groups.n_counted, groups.n);
  }
  return groups;
}

void refuse_what_differs(const ConfigFields& fields, bool is_v3) {
  refuse_foreign_arithmetic(fields, {"n_routed_experts", "num_experts", "num_local_experts",
                                     "n_shared_experts", "num_experts_per_tok", "moe_layer_freq",
                                     "moe_intermediate_size", "routed_scaling_factor"});
  expect_text(fields, "hidden_act", {"silu", "swish"});
  expect_text(fields, "scoring_func", {is_v3 ? "sigmoid" : "softmax"});
  if (is_v3) {
    expect_text(fields, "topk_method", {"noaux_tc"});
  } else {
    expect_text(fields, "topk_method", {"greedy", "group_limited_greedy"});
    expect_false(fields, "norm_topk_prob");
    expect_false(fields, "mlp_bias");
    expect_true(fields, "rope_interleave");
  }
  if (fields.has("moe_layer_freq")) fields.size("moe_layer_freq", 1, 1);
}

DeepSeek parse_deepseek(const ConfigFields& fields) {
  DeepSeek model;
  constexpr std::string_view kRotated = "qk_rope_head_dim";
  if (const std::size_t columns = fields.size_or(kRotated, 64); columns % 2 != 0) {
    throw Error("{}: '{}': expected an even number (RoPE rotates pairs), found {}", fields.where(),
                kRotated, columns);
  }
  const bool is_v3 = fields.text_or("model_type", "") == "deepseek_v3";
  refuse_what_differs(fields, is_v3);
  model.is_v3 = is_v3;
  model.sizes = parse_sizes(fields,
                            {.vocab_size = is_v3 ? std::size_t{129'280} : std::size_t{102'400},
                             .max_seq_len = is_v3 ? std::size_t{4096} : std::size_t{2048},
                             .head_dim = 64},
                            {.head_dim = kRotated});
  if (model.sizes.n_kv_heads != model.sizes.n_heads) {
    throw Error("{}: 'num_key_value_heads': expected {}, one per head, found {}", fields.where(),
                model.sizes.n_heads, model.sizes.n_kv_heads);
  }
  // Each head of each layer has two matrices of its own.
  check_at_most(fields, "num_attention_heads", model.sizes.n_heads,
                kMaxHeads / model.sizes.n_layers);
  model.latent = parse_latent(fields, model.sizes.n_heads);
  model.bias = fields.flag_or("attention_bias", false);
  model.heads_apart = fields.flag_or("stored_heads_apart", false);  // kStoredFields
  model.n_dense = fields.size_or("first_k_dense_replace", is_v3 ? 3 : 0, 0);
  model.n_prediction_layers =
      fields.size_or("num_nextn_predict_layers", 0, 0, kMaxPredictionLayers);

  model.experts = parse_experts(fields, model.sizes.n_layers,
                                {.n = is_v3 ? std::size_t{256} : std::size_t{64},
                                 .n_chosen = 8,
                                 .width = is_v3 ? std::size_t{2048} : std::size_t{1407},
                                 .normed = is_v3},
                                {.n = "n_routed_experts"});
  if (!is_v3) fields.size("num_experts_per_tok", 1, model.experts.n);  // a required field
  model.groups = parse_groups(fields, is_v3, model.experts.n);
  check_at_most(fields, "num_experts_per_tok", model.experts.n_chosen,
                model.experts.n / model.groups.n * model.groups.n_chosen);
  model.routing_scale =
      static_cast<float>(fields.number_or("routed_scaling_factor", is_v3 ? 2.5 : 1.0, 1e-6, 1e6));
  const std::size_t n_shared = fields.size_or("n_shared_experts", is_v3 ? 1 : 2);
  check_at_most(fields, "n_shared_experts", n_shared, kMaxDimension / model.experts.width);
  model.shared_width = n_shared * model.experts.width;
  return model;
}

// RoPE, and the scale of scores. If yarn stretches RoPE, the scale may have one more factor. A
// factor for the rotated part only is refused.
struct Scores {
  RopeConfig rope;
  float scale = 1.0f;
};
Scores parse_scores(const ConfigFields& fields, const DeepSeek& model) {
  Scores scores;
  scores.rope = parse_rope(fields, model.sizes.max_seq_len, 10'000.0, kYarn);
  scores.scale = 1.0f / std::sqrt(static_cast<float>(model.latent.plain + model.latent.rope));
  if (scores.rope.type == RopeConfig::Type::Default) return scores;
  if (scores.rope.attention_factor != 1.0) {
    throw Error(
        "{}: 'mscale': expected the value of 'mscale_all_dim', or 'attention_factor' 1, found an "
        "attention factor of {}",
        fields.where(), scores.rope.attention_factor);
  }
  const double all = rope_object(fields)->number_or("mscale_all_dim", 0.0, 0.0, 1e6);
  if (scores.rope.factor > 1.0 && all != 0.0) {
    const auto grown = static_cast<float>(0.1 * all * std::log(scores.rope.factor) + 1.0);
    scores.scale *= grown * grown;
  }
  return scores;
}

// The buffers that other decoders do not have. In q, k, v and a, a head consists of the part that
// RoPE rotates, followed by the latent.
struct LatentBuffers {
  BufferId query, plain, rotated, absorbed;  // of queries: their latent, both parts, plain * W
  BufferId key, latent;                      // of the token: the part that RoPE rotates, the latent
  BufferId values;
  BufferId r, shared_gate, shared_up;
};

LatentBuffers make_buffers(DecoderWriter& w, const DeepSeek& model) {
  const LatentSizes& s = model.latent;
  LatentBuffers b;
  b.query = s.has_query_latent ? w.buffer("b", s.query) : w.n;
  b.plain = w.buffer("qn", s.n_heads * s.plain);
  b.rotated = w.buffer("qr", s.n_heads * s.rope);
  b.absorbed = w.buffer("ql", s.n_heads * s.latent);
  b.key = w.buffer("kr", s.rope);
  b.latent = w.buffer("l", s.latent);
  b.values = w.buffer("y", s.n_heads * s.value);
  b.r = w.buffer("r", model.experts.n);
  b.shared_gate = w.buffer("sg", model.shared_width);
  b.shared_up = w.buffer("su", model.shared_width);
  return b;
}

// kv_b_proj computes the plain key and the value of each head from the latent. A score is
// q . (W latent) = (W^T q) . latent, and a weighted sum of values is W times the same sum of
// latents. So the cache keeps only latents, and all heads share them. (It keeps them
// twice, as keys and as values, so that all models share one attention step.)
struct HeadMatrices {
  std::vector<WeightId> keys, values;
};
HeadMatrices head_matrices(DecoderWriter& w, const LatentSizes& s, const std::string& self,
                           bool apart) {
  HeadMatrices all;
  for (std::size_t head = 0; head < s.n_heads; ++head) {
    if (apart) {  // the file stores W^T for keys and W for values
      Weight key{fmt::format("{}k_b_proj.{}.weight", self, head), {s.latent, s.plain}};
      Weight value{fmt::format("{}v_b_proj.{}.weight", self, head), {s.value, s.latent}};
      key.exact = value.exact = true;
      all.keys.push_back(w.weight(std::move(key)));
      all.values.push_back(w.weight(std::move(value)));
      continue;
    }
    Weight one{self + "kv_b_proj.weight", {}};
    one.stored = {.slice = head, .of_slices = s.n_heads};
    one.exact = true;
    Weight key = one, value = one;
    key.shape = {s.latent, s.plain};
    key.stored.transposed = true;
    key.stored.of_inputs = s.plain + s.value;
    value.shape = {s.value, s.latent};
    value.stored.first_row = s.plain;
    value.stored.of_rows = s.plain + s.value;
    all.keys.push_back(w.weight(std::move(key)));
    all.values.push_back(w.weight(std::move(value)));
  }
  return all;
}

void latent_norm(DecoderWriter& w, const char* name, BufferId x, std::size_t width,
                 const std::string& weight) {
  w.step(name, NormStep{x, x, w.weight({weight + ".weight", {width}}), width, kLatentEps});
}

void write_latent_attention(DecoderWriter& w, const DeepSeek& model, const LatentBuffers& b,
                            FrequenciesId rope, float scale, const std::string& self) {
  const LatentSizes& s = model.latent;
  // The rows of a query's head: the plain part, then the part that RoPE rotates.
  const std::size_t head = s.plain + s.rope, queries = s.n_heads * head;
  const std::string kv = self + "kv_a_proj_with_mqa";
  if (s.has_query_latent) w.linear("q_latent", b.query, w.n, self + "q_a_proj", model.bias);
  w.linear("latent", b.latent, w.n, kv, model.bias, rows_of(s.latent + s.rope, 0));
  w.linear("k", b.key, w.n, kv, model.bias, rows_of(s.latent + s.rope, s.latent));
  if (s.has_query_latent) latent_norm(w, "q_latent_norm", b.query, s.query, self + "q_a_layernorm");
  const std::string q = self + (s.has_query_latent ? "q_b_proj" : "q_proj");
  w.linear("q_plain", b.plain, b.query, q, false, rows_of(queries, 0, s.plain, head));
  w.linear("q", b.rotated, b.query, q, false, rows_of(queries, s.plain, s.rope, head));
  latent_norm(w, "latent_norm", b.latent, s.latent, self + "kv_a_layernorm");

  HeadMatrices matrices = head_matrices(w, s, self, model.heads_apart);
  w.step("q_absorbed", HeadsLinearStep{b.absorbed, b.plain, std::move(matrices.keys)});
  w.step("q_joined", JoinStep{w.q, b.rotated, b.absorbed, s.n_heads});
  w.step("k_joined", JoinStep{w.k, b.key, b.latent});
  w.step("v_joined", JoinStep{w.v, b.key, b.latent});
  w.rope(rope);
  w.attention(scale);
  w.step("attn_values", HeadsLinearStep{b.values, w.a, std::move(matrices.values), s.rope});
  w.linear("attn_proj", w.o, b.values, self + "o_proj", model.bias);
}

void write_experts_and_shared(DecoderWriter& w, const DeepSeek& model, const LatentBuffers& b,
                              const std::string& mlp) {
  using Function = ActivateStep::Function;
  RouteStep how{.x = b.r, .n_chosen = model.experts.n_chosen, .normed = model.experts.normed};
  how.score = model.is_v3 ? RouteStep::Score::Sigmoid : RouteStep::Score::Softmax;
  how.scale = model.routing_scale;
  how.groups = model.groups;
  if (model.is_v3) {
    how.bias = w.weight({mlp + "gate.e_score_correction_bias", {model.experts.n}});
  }
  write_experts(w, how, model.experts, {mlp + "gate", mlp + "experts."}, Function::Silu);
  w.add("mlp_residual");

  const std::string shared = mlp + "shared_experts.";
  w.linear("shared_gate", b.shared_gate, w.n, shared + "gate_proj");
  w.linear("shared_up", b.shared_up, w.n, shared + "up_proj");
  w.step("shared_swiglu", ActivateStep{b.shared_gate, b.shared_gate, b.shared_up, Function::Silu});
  w.linear("shared_down", w.o, b.shared_gate, shared + "down_proj");
  w.add("shared_residual");
}

Plan deepseek_plan(const ConfigFields& fields) {
  const DeepSeek model = parse_deepseek(fields);
  const Scores scores = parse_scores(fields, model);
  const bool neighbours = !model.is_v3 || fields.flag_or("rope_interleave", true);
  DecoderSizes sizes = model.sizes;
  sizes.n_kv_heads = 1;
  sizes.head_dim = model.latent.rope + model.latent.latent;

  Plan plan;
  DecoderStyle style;
  if (neighbours) style.pairs = RopeStep::Pairs::Neighbours;
  DecoderWriter w(model.is_v3 ? "deepseek_v3" : "deepseek_v2", sizes, plan, style);
  const LatentBuffers b = make_buffers(w, model);
  const FrequenciesId rope = w.frequencies(scores.rope, model.latent.rope);
  w.embedding();
  for (std::size_t i = 0; i < sizes.n_layers; ++i) {
    const std::string at = w.layer(i), mlp = at + "mlp.";
    w.norm("attn_norm", w.n, w.x, at + "input_layernorm");
    write_latent_attention(w, model, b, rope, scores.scale, at + "self_attn.");
    w.add("attn_residual");

    w.norm("mlp_norm", w.n, w.x, at + "post_attention_layernorm");
    if (i >= model.n_dense) {
      write_experts_and_shared(w, model, b, mlp);
    } else {
      w.gate(w.n, mlp, ActivateStep::Function::Silu);
      w.linear("down", w.o, w.g, mlp + "down_proj");
      w.add("mlp_residual");
    }
  }
  w.logits();
  plan.unused.push_back("mtp.");  // the name of the extra layers in a GGUF file
  for (std::size_t i = 0; i < model.n_prediction_layers; ++i) {
    plan.unused.push_back(fmt::format("model.layers.{}.", sizes.n_layers + i));
  }
  return plan;
}

constexpr std::string_view kDeepseekTypes[] = {"deepseek_v2", "deepseek_v3"};

}  // namespace

extern const Architecture architecture_deepseek;
constinit const Architecture architecture_deepseek = {kDeepseekTypes, deepseek_plan};

}  // namespace stagecraft
