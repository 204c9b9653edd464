// Qwen3.5 (Qwen Team 2026), text only. Differences from Qwen3: three of four layers are Gated
// DeltaNet (Yang et al. 2024), which keeps a matrix per head instead of keys and values. Attention
// has a gate, RoPE rotates a quarter of each head, and norms multiply with 1 + weight.
#include <array>

#include "model/architectures/architectures.h"
#include "model/config_extensions.h"
#include "model/decoder_writer.h"
#include "model/layer_fields.h"
#include "model/rope_fields.h"

namespace stagecraft {
namespace {

// Fields about the positions of images. The positions of a text are equal in all three directions,
// so they do not matter here.
constexpr std::array<std::string_view, 2> kOfImages = {"mrope_section", "mrope_interleaved"};
constexpr std::size_t kMostDeltaTaps = 64;

struct DeltaSizes {
  std::size_t n_heads = 0, n_key_heads = 0, key_dim = 0, value_dim = 0, n_taps = 0;
  bool in_turn = false;

  std::size_t keys() const { return n_key_heads * key_dim; }
  std::size_t values() const { return n_heads * value_dim; }
  std::size_t mixed() const { return 2 * keys() + values(); }
};

DeltaSizes parse_delta(const ConfigFields& fields) {
  DeltaSizes sizes;
  sizes.n_heads = fields.size_or("linear_num_value_heads", 32);
  sizes.n_key_heads = fields.size_or("linear_num_key_heads", 16);
  sizes.key_dim = fields.size_or("linear_key_head_dim", 128);
  sizes.value_dim = fields.size_or("linear_value_head_dim", 128);
  sizes.n_taps = fields.size_or("linear_conv_kernel_dim", 4, 1, kMostDeltaTaps);
  sizes.in_turn = fields.flag_or("stored_key_heads_in_turn", false);  // kStoredFields
  if (sizes.n_heads % sizes.n_key_heads != 0) {
    throw Error(
        "{}: 'linear_num_value_heads': expected a multiple of 'linear_num_key_heads' {}, "
        "found {}",
        fields.where(), sizes.n_key_heads, sizes.n_heads);
  }
  if (sizes.mixed() > kMaxDimension) {
    throw Error("{}: 'linear_num_value_heads': expected at most {} numbers in all heads, found {}",
                fields.where(), kMaxDimension, sizes.mixed());
  }
  return sizes;
}

// Which layers have attention; the others have the delta rule.
std::vector<bool> full_attention_layers(const ConfigFields& fields, std::size_t n_layers) {
  if (fields.has("layer_types"))
    return parse_attention_layers(fields, n_layers, "linear_attention");
  return every_nth_layer(n_layers, fields.size_or("full_attention_interval", 4));
}

// Buffers for both kinds of layers that other decoders do not have.
struct MixerBuffers {
  BufferId z;     // the gate of attention
  BufferId m, c;  // q, k and v of the delta rule, before the convolution and after it
  BufferId beta, decay, y, gate;
};

void write_gated_attention(DecoderWriter& w, const MixerBuffers& b, const DecoderSizes& sizes,
                           FrequenciesId rope, bool bias, const std::string& self) {
  // The rows of q_proj: for each head, those of its query, then those of its gate.
  const std::size_t head = sizes.head_dim, all = 2 * sizes.q_dim();
  w.linear("q", w.q, w.n, self + "q_proj", bias, rows_of(all, 0, head, 2 * head));
  w.linear("attn_gate", b.z, w.n, self + "q_proj", bias, rows_of(all, head, head, 2 * head));
  w.linear("k", w.k, w.n, self + "k_proj", bias);
  w.linear("v", w.v, w.n, self + "v_proj", bias);
  w.head_norms(self);
  w.rope(rope);
  w.attention(sizes.score_scale());
  w.step("attn_gated", ActivateStep{w.a, b.z, w.a, ActivateStep::Function::Sigmoid});
  w.linear("attn_proj", w.o, w.a, self + "o_proj", bias);
}

void write_delta(DecoderWriter& w, const MixerBuffers& b, const DeltaSizes& delta, float eps,
                 const std::string& at) {
  using Function = ActivateStep::Function;
  w.linear("delta_qkv", b.m, w.n, at + "in_proj_qkv");
  w.linear("delta_gate", b.gate, w.n, at + "in_proj_z");
  w.linear("delta_beta", b.beta, w.n, at + "in_proj_b");
  w.linear("delta_decay", b.decay, w.n, at + "in_proj_a");
  w.short_conv("delta_conv", b.c, b.m, at + "conv1d", delta.n_taps, false);
  w.step("delta_silu", ActivateStep{b.c, b.c, kNone, Function::Silu});
  w.step("delta_out",
         DeltaStep{b.y, b.c, b.beta, b.decay, w.weight({at + "A_log", {delta.n_heads}}),
                   w.weight({at + "dt_bias", {delta.n_heads}}),
                   w.state({delta.n_heads * delta.key_dim, delta.value_dim}), delta.n_key_heads,
                   delta.key_dim, delta.in_turn});
  const WeightId norm = w.weight({at + "norm.weight", {delta.value_dim}});
  w.step("delta_norm", NormStep{b.y, b.y, norm, delta.value_dim, eps});
  w.step("delta_gated", ActivateStep{b.y, b.gate, b.y, Function::Silu});
  w.linear("attn_proj", w.o, b.y, at + "out_proj");
}

Plan text_plan(const ConfigFields& fields, const DecoderStyle& style) {
  refuse_foreign_arithmetic(fields, {"partial_rotary_factor"});
  expect_text(fields, "hidden_act", {"silu", "swish"});
  expect_true(fields, "attn_output_gate");
  const DecoderSizes sizes = parse_sizes(
      fields, {.vocab_size = 248'320, .max_seq_len = 32'768, .n_kv_heads = 4, .head_dim = 256});
  const DeltaSizes delta = parse_delta(fields);
  const std::vector<bool> attends = full_attention_layers(fields, sizes.n_layers);
  const bool bias = fields.flag_or("attention_bias", false);
  const PartialRope partial = parse_partial_rope(
      fields, sizes.max_seq_len, sizes.head_dim,
      {.factor = "partial_rotary_factor", .default_value = 0.25, .honoured = kOfImages});

  Plan plan;
  DecoderWriter w("qwen3_5_text", sizes, plan, style);
  const MixerBuffers b{w.buffer("z", sizes.q_dim()),     w.buffer("m", delta.mixed()),
                       w.buffer("c", delta.mixed()),     w.buffer("beta", delta.n_heads),
                       w.buffer("decay", delta.n_heads), w.buffer("y", delta.values()),
                       w.buffer("s", delta.values())};
  const FrequenciesId rope = w.frequencies(partial.rope, partial.columns);
  w.embedding();
  for (std::size_t i = 0; i < sizes.n_layers; ++i) {
    const std::string at = w.layer(i), mlp = at + "mlp.";
    w.norm("attn_norm", w.n, w.x, at + "input_layernorm");
    if (attends[i]) {
      write_gated_attention(w, b, sizes, rope, bias, at + "self_attn.");
    } else {
      write_delta(w, b, delta, sizes.norm_eps, at + "linear_attn.");
    }
    w.add("attn_residual");

    w.norm("mlp_norm", w.n, w.x, at + "post_attention_layernorm");
    w.gate(w.n, mlp, ActivateStep::Function::Silu);
    w.linear("down", w.o, w.g, mlp + "down_proj");
    w.add("mlp_residual");
  }
  w.logits();
  return plan;
}

Plan qwen3_5_plan(const ConfigFields& fields) {
  TextModel text = text_config(fields, "qwen3_5_text");
  text.style.norm_plus = 1.0f;
  Plan plan = text_plan(text.fields, text.style);
  plan.unused = {"model.visual.", "mtp."};  // images, and layers that predict further tokens
  return plan;
}

constexpr std::string_view kQwen35Types[] = {"qwen3_5", "qwen3_5_text"};

}  // namespace

extern const Architecture architecture_qwen3_5;
constinit const Architecture architecture_qwen3_5 = {kQwen35Types, qwen3_5_plan};

}  // namespace stagecraft
