// LFM2 (Liquid AI 2025). Differences from Llama: most layers have a short convolution instead of
// attention, gated before and after it. Such a layer keeps a few rows per sequence, not keys and
// values of all positions. Heads of q and k are normed, and the tensors have other names.
#include <cmath>

#include "base/round_up.h"
#include "model/architectures/architectures.h"
#include "model/config_extensions.h"
#include "model/decoder_writer.h"
#include "model/layer_fields.h"

namespace stagecraft {
namespace {

constexpr std::size_t kMostTaps = 64;
constexpr double kMaxBlockMultiplier = 1e3;

// Which layers have attention; the others have a convolution.
std::vector<bool> attention_layers(const ConfigFields& fields, std::size_t n_layers) {
  if (fields.has("layer_types")) return parse_attention_layers(fields, n_layers, "conv");
  const auto listed = parse_listed_layers(fields, "full_attn_idxs", n_layers);
  return listed.value_or(std::vector<bool>(n_layers, true));
}

// Older files give a width of the feed-forward block that must still be reduced by a third and
// rounded up.
std::size_t feed_forward_width(const ConfigFields& fields, std::size_t written) {
  if (!fields.flag_or("block_auto_adjust_ff_dim", true)) return written;
  double width = std::floor(2.0 * static_cast<double>(written) / 3.0);
  std::size_t multiple = 1;
  if (!fields.is_null("block_ffn_dim_multiplier")) {
    width = std::floor(width * fields.number_or("block_ffn_dim_multiplier", 1.0,
                                                1.0 / kMaxBlockMultiplier, kMaxBlockMultiplier));
    multiple = fields.size_or("block_multiple_of", 256);
  }
  const auto numbers = static_cast<std::size_t>(width);
  const std::size_t adjusted = round_up(numbers, multiple);
  if (adjusted == 0 || adjusted > kMaxDimension) {
    throw Error(
        "{}: 'block_ffn_dim_multiplier': expected a feed-forward width of 1 to {}, found {}",
        fields.where(), kMaxDimension, adjusted);
  }
  return adjusted;
}

DecoderSizes lfm2_sizes(const ConfigFields& fields) {
  const bool older = fields.has("block_ff_dim");
  DecoderSizes sizes = parse_sizes(
      fields,
      {.vocab_size = 65'536,
       .max_seq_len = 128'000,
       .tied = true,
       .norm_eps = 1e-5,
       .n_kv_heads = 8},
      {.ffn_dim = older ? "block_ff_dim" : "intermediate_size", .norm_eps = "norm_eps"});
  sizes.ffn_dim = feed_forward_width(fields, sizes.ffn_dim);
  sizes.tied = fields.flag_or("tie_embedding", sizes.tied);
  return sizes;
}

// o = out_proj(c * short_conv(b * u)); b, c and u are thirds of in_proj.
struct ShortConv {
  BufferId b, c, u, y;
  std::size_t n_taps = 0;
  bool bias = false;
};
void write_short_conv(DecoderWriter& w, const ShortConv& conv, std::size_t dim,
                      const std::string& at) {
  using Function = ActivateStep::Function;
  w.linear("conv_b", conv.b, w.n, at + "in_proj", conv.bias, rows_of(3 * dim, 0));
  w.linear("conv_c", conv.c, w.n, at + "in_proj", conv.bias, rows_of(3 * dim, dim));
  w.linear("conv_x", conv.u, w.n, at + "in_proj", conv.bias, rows_of(3 * dim, 2 * dim));
  w.step("conv_in", ActivateStep{conv.u, conv.b, conv.u, Function::Identity});
  w.short_conv("conv", conv.y, conv.u, at + "conv", conv.n_taps, conv.bias);
  w.step("conv_out", ActivateStep{conv.y, conv.c, conv.y, Function::Identity});
  w.linear("conv_proj", w.o, conv.y, at + "out_proj", conv.bias);
}

Plan lfm2_plan(const ConfigFields& fields) {
  // The last two are scales of the random initial weights: they do not matter after training.
  refuse_foreign_arithmetic(
      fields, {"block_ffn_dim_multiplier", "block_mlp_init_scale", "block_out_init_scale"});
  const DecoderSizes sizes = lfm2_sizes(fields);
  const std::vector<bool> attends = attention_layers(fields, sizes.n_layers);
  const float scale = sizes.score_scale();

  Plan plan;
  DecoderWriter w("lfm2", sizes, plan, {.final_norm = "model.embedding_norm"});
  const FrequenciesId rope = w.frequencies(parse_rope(fields, sizes.max_seq_len, 1'000'000.0));
  ShortConv conv{w.buffer("b", sizes.dim), w.buffer("c", sizes.dim), w.buffer("h", sizes.dim),
                 w.buffer("y", sizes.dim)};
  conv.n_taps = fields.size_or("conv_L_cache", 3, 1, kMostTaps);
  conv.bias = fields.flag_or("conv_bias", false);
  w.embedding();
  for (std::size_t i = 0; i < sizes.n_layers; ++i) {
    const std::string at = w.layer(i), self = at + "self_attn.", mlp = at + "feed_forward.";
    w.norm("attn_norm", w.n, w.x, at + "operator_norm");
    if (attends[i]) {
      w.qkv(w.n, self, false);
      w.norm("q_norm", w.q, w.q, self + "q_layernorm", sizes.head_dim);
      w.norm("k_norm", w.k, w.k, self + "k_layernorm", sizes.head_dim);
      w.rope(rope);
      w.attention(scale);
      w.linear("attn_proj", w.o, w.a, self + "out_proj");
    } else {
      write_short_conv(w, conv, sizes.dim, at + "conv.");
    }
    w.add("attn_residual");

    w.norm("mlp_norm", w.n, w.x, at + "ffn_norm");
    w.linear("gate", w.g, w.n, mlp + "w1");
    w.linear("up", w.u, w.n, mlp + "w3");
    w.activate(ActivateStep::Function::Silu);
    w.linear("down", w.o, w.g, mlp + "w2");
    w.add("mlp_residual");
  }
  w.logits();
  return plan;
}

constexpr std::string_view kLfm2Types[] = {"lfm2"};

}  // namespace

extern const Architecture architecture_lfm2;
constinit const Architecture architecture_lfm2 = {kLfm2Types, lfm2_plan};

}  // namespace stagecraft
