// Gemma 4 (Google 2026), text only. Differences from Gemma 3: heads of global layers are wider;
// values are normed; the last layers may use keys and values of earlier layers; a second embedding
// may give numbers per token and layer, which the layer adds; there may be experts in addition to
// the feed-forward block. Norms multiply with their weight as it is stored.
#include <array>
#include <cmath>

#include "model/architectures/architectures.h"
#include "model/architectures/experts_common.h"
#include "model/architectures/gemma_common.h"
#include "model/config_extensions.h"
#include "model/decoder_fields.h"
#include "model/layer_fields.h"
#include "model/rope_fields.h"
#include "model/rope_frequencies.h"

namespace stagecraft {
namespace {

constexpr std::string_view kLayerSizes = "per_layer_config", kKvHeads = "num_key_value_heads";
constexpr double kGlobalTheta = 1'000'000.0, kGlobalFraction = 0.25, kLocalTheta = 10'000.0;
constexpr std::size_t kGlobalHeadDim = 512, kLocalWindow = 512, kGlobalPattern = 6,
                      kLayerWidth = 256;

// Properties that all local layers fraction, or all global ones.
struct Kind {
  std::size_t head_dim = 0, n_kv_heads = 0;
  std::size_t window = 0;
  bool v_is_k = false;  // one projection computes both
  // Ids in the plan:
  FrequenciesId rope = kNone;
  BufferId q = kNone, k = kNone, v = kNone, a = kNone;
  CacheId cache = kNone;  // of the last layer of this kind with its own cache
};

struct Gemma4 {
  DecoderSizes sizes;
  Kind local, global;
  std::vector<bool> is_global;  // of each layer
  std::size_t n_shared = 0;     // the last n_shared layers have no keys and values of their own
  bool wide = false;            // and have a feed-forward block of twice the width
  std::size_t layer_width = 0;  // numbers per token that each layer adds; 0: none
  std::optional<ExpertSizes> experts;
  float soft_cap = 0.0f;
  bool bias = false;

  bool is_shared(std::size_t layer) const { return layer + n_shared >= sizes.n_layers; }
  Kind& kind(std::size_t layer) { return is_global[layer] ? global : local; }
};

// By default, each sixth layer is global. The last layer is always global.
std::vector<bool> global_layers(const ConfigFields& fields, std::size_t n_layers) {
  std::vector<bool> is_global = fields.has("layer_types")
                                    ? parse_attention_layers(fields, n_layers, "sliding_attention")
                                    : every_nth_layer(n_layers, kGlobalPattern);
  is_global.back() = true;
  return is_global;
}

// Newer files list the sizes of global layers that differ: {"5": {"head_dim": 512}}.
void parse_layer_sizes(const ConfigFields& layers, Gemma4& model) {
  const Kind& local = model.local;
  Kind& global = model.global;
  std::size_t n_named = 0;
  for (std::size_t i = 0, n_global = 0; i < model.sizes.n_layers; ++i) {
    if (!model.is_global[i]) continue;
    std::size_t head_dim = local.head_dim, n_kv_heads = local.n_kv_heads;
    if (const auto layer = layers.object_of(std::to_string(i))) {
      ++n_named;
      for (const JsonNode size : layer->object().members()) {
        if (size.key() != "head_dim" && size.key() != kKvHeads) refuse_config_field(*layer, size);
      }
      head_dim = layer->size_or("head_dim", head_dim);
      n_kv_heads = layer->size_or(kKvHeads, n_kv_heads);
      check_heads(*layer, model.sizes.n_heads, n_kv_heads, head_dim);
    }
    const bool same = global.head_dim == head_dim && global.n_kv_heads == n_kv_heads;
    if (n_global++ != 0 && !same) {
      throw Error(
          "{}: '{}': expected {} KV heads of size {}, as in other global layers, found {} of size "
          "{}",
          layers.where(), i, global.n_kv_heads, global.head_dim, n_kv_heads, head_dim);
    }
    global.head_dim = head_dim;
    global.n_kv_heads = n_kv_heads;
  }
  if (layers.object().size() != n_named) {
    throw Error("{}: expected sizes for the {} named global layers only, found {} entries",
                layers.where(), n_named, layers.object().size());
  }
}

void parse_heads(const ConfigFields& fields, Gemma4& model) {
  const bool v_is_k = fields.flag_or("attention_k_eq_v", false);
  model.local.head_dim = model.sizes.head_dim;
  model.local.n_kv_heads = model.sizes.n_kv_heads;
  model.local.window = fields.size_or("sliding_window", kLocalWindow);
  model.global.v_is_k = v_is_k;
  model.global.n_kv_heads = model.sizes.n_kv_heads;
  if (const auto layers = fields.object_of(kLayerSizes)) {
    parse_layer_sizes(*layers, model);
  } else {
    model.global.head_dim = fields.size_or("global_head_dim", kGlobalHeadDim);
    if (v_is_k) {
      model.global.n_kv_heads =
          fields.size_or("num_global_key_value_heads", model.sizes.n_kv_heads);
    }
    check_heads(fields, model.sizes.n_heads, model.global.n_kv_heads, model.global.head_dim,
                {.n_kv_heads = "num_global_key_value_heads", .head_dim = "global_head_dim"});
  }
}

void parse_shared(const ConfigFields& fields, Gemma4& model) {
  constexpr std::string_view kField = "num_kv_shared_layers";
  const std::size_t n_layers = model.sizes.n_layers;
  model.n_shared = fields.size_or(kField, 0, 0, n_layers - 1);
  model.wide = fields.flag_or("use_double_wide_mlp", false);
  for (std::size_t i = n_layers - model.n_shared; i < n_layers; ++i) {
    bool found = false;
    for (std::size_t own = 0; own < n_layers - model.n_shared; ++own) {
      found = found || model.is_global[own] == model.is_global[i];
    }
    if (found) continue;
    throw Error(
        "{}: '{}': expected an earlier {} layer with keys and values of its own, found "
        "none for layer {}",
        fields.where(), kField, model.is_global[i] ? "global" : "local", i);
  }
}

// In global layers, "proportional" RoPE rotates only the first pairs of a head, with the
// frequencies that they have when all pairs are rotated.
Frequencies parse_rope_of(const ConfigFields& fields, const Gemma4& model, bool global) {
  constexpr std::string_view kFraction = "partial_rotary_factor";
  constexpr std::array<std::string_view, 3> kElsewhere = {"rope_theta", "rope_scaling",
                                                          "rope_local_base_freq"};
  expect_absent(fields, kElsewhere, "'rope_parameters' instead");
  double theta = global ? kGlobalTheta : kLocalTheta, fraction = global ? kGlobalFraction : 1.0;
  if (const auto kinds = fields.object_of("rope_parameters")) {
    const char* const name = global ? "full_attention" : "sliding_attention";
    const auto rope = kinds->object_of(name);
    if (!rope) throw Error("{}: '{}': expected an object, found none", kinds->where(), name);
    expect_text(*rope, "rope_type", {"default", "proportional"});
    const bool in_part = rope->text_or("rope_type", "default") == "proportional";
    for (const JsonNode value : rope->object().members()) {
      const std::string_view key = value.key();
      const bool known = key == "rope_type" || key == "rope_theta" || (in_part && key == kFraction);
      if (!known && !value.is_null()) refuse_config_field(*rope, value);
    }
    theta = parse_theta(*rope, "rope_theta", theta);
    fraction = in_part ? rope->number_or(kFraction, 1.0, 0.0, 1.0) : 1.0;
  }
  const std::size_t head_dim = global ? model.global.head_dim : model.local.head_dim;
  RopeConfig rope;
  rope.theta = theta;
  Frequencies table{fmt::format("theta {}", theta), rope_frequencies(rope, head_dim)};
  const auto turned = static_cast<std::size_t>(fraction * static_cast<double>(head_dim) / 2.0);
  if (turned == table.values.size()) return table;
  table.name += fmt::format(", the first {} of {} pairs", turned, table.values.size());
  std::fill(table.values.begin() + static_cast<std::ptrdiff_t>(turned), table.values.end(), 0.0f);
  return table;
}

Gemma4 parse(const ConfigFields& fields) {
  refuse_foreign_arithmetic(fields, {"final_logit_softcapping", "enable_moe_block", "num_experts",
                                     "top_k_experts", "moe_intermediate_size", kLayerSizes});
  expect_text(fields, "hidden_activation", {"gelu_pytorch_tanh"});
  expect_text(fields, "use_bidirectional_attention", {"vision"});  // a text has no images
  Gemma4 model;
  model.sizes = parse_sizes(fields, {.vocab_size = 262'144,
                                     .max_seq_len = 131'072,
                                     .tied = true,
                                     .n_kv_heads = 4,
                                     .head_dim = 256});
  model.is_global = global_layers(fields, model.sizes.n_layers);
  parse_heads(fields, model);
  parse_shared(fields, model);
  model.layer_width = fields.size_or("hidden_size_per_layer_input", kLayerWidth, 0);
  const std::size_t rows = fields.size_or("vocab_size_per_layer_input", 262'144);
  if (model.layer_width != 0 && rows != model.sizes.vocab_size) {
    throw Error("{}: 'vocab_size_per_layer_input': expected 'vocab_size' {}, found {}",
                fields.where(), model.sizes.vocab_size, rows);
  }
  if (model.layer_width * model.sizes.n_layers > kMaxDimension) {
    throw Error(
        "{}: 'hidden_size_per_layer_input': expected at most {} numbers in all layers, "
        "found {}",
        fields.where(), kMaxDimension, model.layer_width * model.sizes.n_layers);
  }
  if (fields.flag_or("enable_moe_block", false)) {
    const ExpertDefaults given{fields.size("num_experts"), fields.size("top_k_experts")};
    model.experts =
        parse_experts(fields, model.sizes.n_layers, given, {.n_chosen = "top_k_experts"});
  }
  model.soft_cap = gemma_soft_cap(fields, "final_logit_softcapping", 0.0);
  model.bias = fields.flag_or("attention_bias", false);
  return model;
}

class Gemma4Writer {
 public:
  Gemma4Writer(Gemma4 model, Plan& plan, const TextModel& text)
      : model_(std::move(model)),
        w_("gemma4_text", model_.sizes, plan, text.style),
        prefix_(text.prefix),
        eps_(model_.sizes.norm_eps) {}

  void write(Frequencies local_rope, Frequencies global_rope) {
    make_buffers();
    model_.local.rope = w_.frequencies(std::move(local_rope));
    model_.global.rope = w_.frequencies(std::move(global_rope));
    w_.embedding(gemma_embedding_scale(model_.sizes));
    if (model_.layer_width != 0) layer_inputs();
    for (std::size_t i = 0; i < model_.sizes.n_layers; ++i) {
      const std::string at = w_.layer(i);
      attention(model_.kind(i), model_.is_shared(i), at);
      feed_forward(i, at);
      if (model_.layer_width != 0) add_layer_input(i, at);
      w_.step("layer_scaled", MapStep{.x = w_.x, .by = w_.weight({at + "layer_scalar", {1}})});
    }
    w_.logits(1.0f, model_.soft_cap);
  }

 private:
  void make_buffers() {
    Kind& local = model_.local;
    local.q = w_.q;
    local.k = w_.k;
    local.v = w_.v;
    local.a = w_.a;
    Kind& global = model_.global;
    const std::size_t q_dim = model_.sizes.n_heads * global.head_dim;
    const std::size_t kv_dim = global.n_kv_heads * global.head_dim;
    global.q = w_.buffer("Q", q_dim);
    global.k = w_.buffer("K", kv_dim);
    global.v = w_.buffer("V", kv_dim);
    global.a = w_.buffer("A", q_dim);
    if (model_.wide && model_.n_shared != 0) {
      wide_g_ = w_.buffer("G", 2 * model_.sizes.ffn_dim);
      wide_u_ = w_.buffer("U", 2 * model_.sizes.ffn_dim);
    }
    if (model_.layer_width != 0) {
      token_ = w_.buffer("p", model_.sizes.n_layers * model_.layer_width);
      inputs_ = w_.buffer("c", model_.sizes.n_layers * model_.layer_width);
      input_ = w_.buffer("i", model_.layer_width);
    }
    if (model_.experts) {
      routing_weights_ = w_.buffer("r", model_.experts->n);
      routed_ = w_.buffer("m", model_.sizes.dim);
      expert_sum_ = w_.buffer("y", model_.sizes.dim);
    }
  }

  // c = (norm of a projection of the embedding + numbers of the token) / sqrt(2): for each layer,
  // the numbers that it adds.
  void layer_inputs() {
    const std::size_t width = model_.layer_width;
    const auto all = model_.sizes.n_layers * width;
    const WeightId table =
        w_.weight({prefix_ + "embed_tokens_per_layer.weight", {model_.sizes.vocab_size, all}});
    w_.step("layer_embedding", EmbedStep{token_, table, std::sqrt(static_cast<float>(width))});
    w_.linear("layer_projection", inputs_, w_.x, prefix_ + "per_layer_model_projection");
    w_.step("layer_projection_scaled", MapStep{inputs_, root_of_width()});
    w_.norm("layer_projection_norm", inputs_, inputs_, prefix_ + "per_layer_projection_norm",
            width);
    w_.step("layer_sum", AddStep{inputs_, token_});
    w_.step("layer_inputs", MapStep{inputs_, std::sqrt(0.5f)});
  }

  void attention(Kind& kind, bool shared, const std::string& at) {
    const std::string self = at + "self_attn.";
    w_.norm("attn_norm", w_.n, w_.x, at + "input_layernorm");
    w_.linear("q", kind.q, w_.n, self + "q_proj", model_.bias);
    if (!shared) keys_and_values(kind, self);
    w_.norm("q_norm", kind.q, kind.q, self + "q_norm", kind.head_dim);
    if (!shared) w_.norm("k_norm", kind.k, kind.k, self + "k_norm", kind.head_dim);
    w_.step("q_rope", RopeStep{kind.q, kind.rope, kind.head_dim});
    if (!shared) {
      w_.step("k_rope", RopeStep{kind.k, kind.rope, kind.head_dim});
      kind.cache = w_.cache({kind.n_kv_heads, kind.head_dim});
      w_.step("", StoreStep{kind.cache, kind.k, kind.v});
    }
    w_.step("attn_out",
            AttentionStep{kind.a, kind.q, kind.cache, model_.sizes.n_heads, 1.0f, kind.window});
    w_.linear("attn_proj", w_.o, kind.a, self + "o_proj", model_.bias);
    w_.norm("attn_post_norm", w_.o, w_.o, at + "post_attention_layernorm");
    w_.add("attn_residual");
  }

  void keys_and_values(const Kind& kind, const std::string& self) {
    w_.linear("k", kind.k, w_.n, self + "k_proj", model_.bias);
    if (kind.v_is_k) {
      w_.step("v", ActivateStep{kind.v, kind.k, kNone, ActivateStep::Function::Identity});
    } else {
      w_.linear("v", kind.v, w_.n, self + "v_proj", model_.bias);
    }
    w_.step("v_norm", NormStep{kind.v, kind.v, kNone, kind.head_dim, eps_});
  }

  void feed_forward(std::size_t layer, const std::string& at) {
    const bool wide = model_.wide && model_.is_shared(layer);
    const BufferId g = wide ? wide_g_ : w_.g, u = wide ? wide_u_ : w_.u;
    w_.norm("mlp_norm", w_.n, w_.x, at + "pre_feedforward_layernorm");
    w_.linear("gate", g, w_.n, at + "mlp.gate_proj");
    w_.linear("up", u, w_.n, at + "mlp.up_proj");
    w_.step("geglu", ActivateStep{g, g, u, ActivateStep::Function::GeluTanh});
    w_.linear("down", w_.o, g, at + "mlp.down_proj");
    if (model_.experts) {
      w_.norm("down_norm", w_.o, w_.o, at + "post_feedforward_layernorm_1");
      experts(at);
      w_.step("mlp_sum", AddStep{w_.o, expert_sum_});
    }
    w_.norm("mlp_post_norm", w_.o, w_.o, at + "post_feedforward_layernorm");
    w_.add("mlp_residual");
  }

  // y = norm of the sum of the chosen experts. Experts and router read different norms of x.
  void experts(const std::string& at) {
    const ExpertSizes& sizes = *model_.experts;
    const std::size_t dim = model_.sizes.dim;
    const WeightId scale = w_.weight({at + "router.scale", {dim}});
    w_.step("router_norm", NormStep{routed_, w_.x, scale, dim, eps_});
    w_.step("router_scaled", MapStep{routed_, root_of_width()});
    w_.route("", routed_, at + "router.proj",
             {.x = routing_weights_, .n_chosen = sizes.n_chosen, .normed = true});
    w_.step("routing_weights_scaled",
            MapStep{.x = routing_weights_,
                    .by = w_.weight({at + "router.per_expert_scale", {sizes.n}})});
    w_.norm("experts_norm", routed_, w_.x, at + "pre_feedforward_layernorm_2");
    ExpertsStep step{expert_sum_, routed_, routing_weights_, {}, ActivateStep::Function::GeluTanh};
    for (std::size_t i = 0; i < sizes.n; ++i) {
      const auto one = [&](const char* name, std::size_t rows, std::size_t columns) {
        Weight weight{at + "experts." + name, {rows, columns}};
        weight.stored = {.slice = i, .of_slices = sizes.n};
        return weight;
      };
      Weight gate = one("gate_up_proj", sizes.width, dim), up = gate;
      up.stored.first_row = sizes.width;
      gate.stored.of_rows = up.stored.of_rows = 2 * sizes.width;
      step.experts.push_back({.gate = w_.weight(std::move(gate)),
                              .up = w_.weight(std::move(up)),
                              .down = w_.weight(one("down_proj", dim, sizes.width))});
    }
    w_.step("experts", std::move(step));
    w_.norm("experts_post_norm", expert_sum_, expert_sum_, at + "post_feedforward_layernorm_2");
  }

  void add_layer_input(std::size_t layer, const std::string& at) {
    w_.linear("layer_gate", input_, w_.x, at + "per_layer_input_gate");
    w_.step("layer_gated", ActivateStep{input_, input_, inputs_, ActivateStep::Function::GeluTanh,
                                        layer * model_.layer_width});
    w_.linear("layer_out", w_.o, input_, at + "per_layer_projection");
    w_.norm("layer_norm", w_.o, w_.o, at + "post_per_layer_input_norm");
    w_.add("layer_residual");
  }

  // 1 / sqrt(dim)
  float root_of_width() const { return 1.0f / std::sqrt(static_cast<float>(model_.sizes.dim)); }

  Gemma4 model_;
  DecoderWriter w_;
  const std::string prefix_;
  const float eps_;
  BufferId wide_g_ = kNone, wide_u_ = kNone;
  BufferId token_ = kNone, inputs_ = kNone, input_ = kNone;
  BufferId routing_weights_ = kNone, routed_ = kNone, expert_sum_ = kNone;
};

Plan gemma4_plan(const ConfigFields& fields) {
  const TextModel text = text_config(fields, "gemma4_text");
  Gemma4 model = parse(text.fields);
  Plan plan;
  plan.unused = {"model.vision_tower.", "model.audio_tower.", "model.embed_vision.",
                 "model.embed_audio."};
  for (std::size_t i = 0; i < model.sizes.n_layers; ++i) {
    if (!model.is_shared(i)) continue;  // files may contain these tensors all the same
    for (const char* name : {"k_proj.", "v_proj.", "k_norm."}) {
      plan.unused.push_back(fmt::format("{}{}.self_attn.{}", text.style.layers, i, name));
    }
  }
  Frequencies local = parse_rope_of(text.fields, model, false),
              global = parse_rope_of(text.fields, model, true);
  Gemma4Writer(std::move(model), plan, text).write(std::move(local), std::move(global));
  return plan;
}

constexpr std::string_view kGemma4Types[] = {"gemma4", "gemma4_text"};

}  // namespace

extern const Architecture architecture_gemma4;
constinit const Architecture architecture_gemma4 = {kGemma4Types, gemma4_plan};

}  // namespace stagecraft
