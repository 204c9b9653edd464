#include "model/decoder_writer.h"

#include <bit>
#include <cmath>

#include <fmt/format.h>

#include "model/activation_names.h"
#include "model/rope_frequencies.h"

namespace stagecraft {
namespace {

// "theta 10000, linear x 8"
std::string rope_text(const RopeConfig& rope) {
  std::string text = fmt::format("theta {}", rope.theta);
  if (rope.type == RopeConfig::Type::Linear) text += fmt::format(", linear x {}", rope.factor);
  if (rope.type == RopeConfig::Type::Llama3) text += fmt::format(", llama3 x {}", rope.factor);
  if (rope.type == RopeConfig::Type::Yarn) text += fmt::format(", yarn x {}", rope.factor);
  if (!rope.factors.empty()) text += ", each frequency divided by a factor of its own";
  return text;
}

}  // namespace

std::vector<float> alibi_slopes(std::size_t n_heads) {
  const std::size_t power = std::bit_floor(n_heads);
  std::vector<float> slopes;
  const auto add = [&](std::size_t i, std::size_t n) {
    slopes.push_back(std::exp2(-8.0f * static_cast<float>(i) / static_cast<float>(n)));
  };
  for (std::size_t i = 1; i <= power; ++i) add(i, power);
  for (std::size_t i = 1; slopes.size() < n_heads; i += 2) add(i, 2 * power);
  return slopes;
}

TextModel text_config(const ConfigFields& fields, std::string_view alone) {
  const bool is_alone = fields.text_or("model_type", "") == alone;
  const std::optional<ConfigFields> inside = fields.object_of("text_config");
  if (!is_alone && !inside) {
    throw Error("{}: 'text_config': expected an object, found none", fields.where());
  }
  const std::string prefix = is_alone ? "model." : "model.language_model.";
  return {is_alone ? fields : *inside,
          prefix,
          {.embedding = prefix + "embed_tokens",
           .layers = prefix + "layers.",
           .final_norm = prefix + "norm"}};
}

Storage rows_of(std::size_t of, std::size_t first, std::size_t block, std::size_t stride) {
  return {.first_row = first, .of_rows = of, .row_block = block, .row_stride = stride};
}

DecoderWriter::DecoderWriter(std::string model_type, const DecoderSizes& sizes, Plan& plan,
                             DecoderStyle style)
    : PlanWriter(plan),
      x(buffer("x", sizes.dim)),
      n(buffer("n", sizes.dim)),
      q(buffer("q", sizes.q_dim())),
      k(buffer("k", sizes.kv_dim())),
      v(buffer("v", sizes.kv_dim())),
      a(buffer("a", sizes.q_dim())),
      o(buffer("o", sizes.dim)),
      g(buffer("g", sizes.ffn_dim)),
      u(style.gated ? buffer("u", sizes.ffn_dim) : kNone),
      sizes_(sizes),
      style_(std::move(style)) {
  plan.model_type = std::move(model_type);
  plan.vocab_size = sizes.vocab_size;
  plan.n_layers = sizes.n_layers;
  plan.max_seq_len = sizes.max_seq_len;
  plan.eos_ids = sizes.eos_ids;
}

// A tied model has one table, and files store it under either name.
WeightId DecoderWriter::table(bool head, BufferId buffer) {
  const std::string first = style_.embedding + ".weight", last = style_.head + ".weight";
  const std::string& name = head ? last : first;
  const std::string& other = head ? first : last;
  const std::size_t width = plan_.buffer(buffer).width;
  return weight({name, {sizes_.vocab_size, width}, sizes_.tied ? other : ""});
}

void DecoderWriter::embedding_to(BufferId out, float scale) {
  step("embedding", EmbedStep{out, table(false, out), scale});
}

void DecoderWriter::embedding_with_positions(const std::string& tensor, std::size_t first_row) {
  const WeightId tokens = table(false, x);
  step("embedding", EmbedStep{x, tokens, 1.0f, positions(tensor, first_row)});
}

WeightId DecoderWriter::positions(const std::string& tensor, std::size_t first_row) {
  plan_.max_positions = sizes_.max_seq_len;
  Weight rows{tensor + ".weight", {sizes_.max_seq_len, sizes_.dim}};
  if (first_row != 0) rows.stored = rows_of(first_row + sizes_.max_seq_len, first_row);
  return weight(std::move(rows));
}

FrequenciesId DecoderWriter::frequencies(const RopeConfig& rope) {
  return frequencies(rope, sizes_.head_dim);
}

FrequenciesId DecoderWriter::frequencies(const RopeConfig& rope, std::size_t columns) {
  return frequencies({rope_text(rope), rope_frequencies(rope, columns)});
}

std::string DecoderWriter::layer(std::size_t index) {
  PlanWriter::layer(static_cast<int>(index));
  return fmt::format("{}{}.", style_.layers, index);
}

void DecoderWriter::norm(std::string name, BufferId out, BufferId in, const std::string& tensor,
                         std::size_t group) {
  const std::size_t width = group == 0 ? plan_.buffer(in).width : group;
  Weight scale{tensor + ".weight", {width}, "", style_.norm_plus};
  if (style_.norm == NormStep::Kind::Rms) {
    return PlanWriter::norm(std::move(name), out, in, std::move(scale), sizes_.norm_eps);
  }
  NormStep norm{out, in, kNone, width, sizes_.norm_eps, style_.norm};
  if (style_.norm_weight) norm.weight = weight(std::move(scale));
  if (style_.norm_bias) norm.bias = weight({tensor + ".bias", {width}});
  step(std::move(name), norm);
}

void DecoderWriter::head_norms(const std::string& at) {
  norm("q_norm", q, q, at + "q_norm", sizes_.head_dim);
  norm("k_norm", k, k, at + "k_norm", sizes_.head_dim);
}

void DecoderWriter::norm_of_heads(std::string name, BufferId heads, const std::string& tensor) {
  const std::size_t width = plan_.buffer(heads).width;
  Weight scale{tensor + ".weight", {width}};
  scale.stored.folded_rows = width / sizes_.head_dim;
  step(std::move(name), NormStep{heads, heads, weight(std::move(scale)), sizes_.head_dim,
                                 sizes_.norm_eps, NormStep::Kind::Layer});
}

void DecoderWriter::qkv(BufferId in, const std::string& at, bool bias) {
  linear("q", q, in, at + "q_proj", bias);
  linear("k", k, in, at + "k_proj", bias);
  linear("v", v, in, at + "v_proj", bias);
}

void DecoderWriter::clip_qkv(std::optional<float> limit) {
  if (!limit) return;
  step("q_clip", MapStep{.x = q, .clip = *limit});
  step("k_clip", MapStep{.x = k, .clip = *limit});
  step("v_clip", MapStep{.x = v, .clip = *limit});
}

void DecoderWriter::fused_qkv(BufferId in, const std::string& tensor, bool bias) {
  // With one key head, both orders are the same.
  if (style_.qkv_apart || sizes_.n_kv_heads == 1) return stacked_qkv(in, tensor, bias);
  const std::size_t head = sizes_.head_dim, queries = sizes_.q_dim() / sizes_.n_kv_heads;
  const std::size_t stride = queries + 2 * head, all = sizes_.n_kv_heads * stride;
  linear("q", q, in, tensor, bias, rows_of(all, 0, queries, stride));
  linear("k", k, in, tensor, bias, rows_of(all, queries, head, stride));
  linear("v", v, in, tensor, bias, rows_of(all, queries + head, head, stride));
}

void DecoderWriter::stacked_qkv(BufferId in, const std::string& tensor, bool bias,
                                bool transposed) {
  if (style_.qkv_apart) return qkv(in, tensor.substr(0, tensor.rfind('.') + 1), bias);
  const std::size_t q_dim = sizes_.q_dim(), kv_dim = sizes_.kv_dim();
  Storage rows = rows_of(q_dim + 2 * kv_dim, 0);
  rows.transposed = transposed;
  linear("q", q, in, tensor, bias, rows);
  rows.first_row = q_dim;
  linear("k", k, in, tensor, bias, rows);
  rows.first_row = q_dim + kv_dim;
  linear("v", v, in, tensor, bias, rows);
}

void DecoderWriter::rope(FrequenciesId rope) {
  step("q_rope", RopeStep{q, rope, sizes_.head_dim, style_.pairs});
  step("k_rope", RopeStep{k, rope, sizes_.head_dim, style_.pairs});
}

void DecoderWriter::attention(float scale, std::size_t window, float soft_cap,
                              std::vector<float> slopes, WeightId sinks) {
  const CacheId keys = cache({sizes_.n_kv_heads, sizes_.head_dim});
  step("", StoreStep{keys, k, v});
  step("attn_out", AttentionStep{a, q, keys, sizes_.n_heads, scale, window, soft_cap,
                                 std::move(slopes), sinks});
}

void DecoderWriter::short_conv(std::string name, BufferId out, BufferId in,
                               const std::string& tensor, std::size_t n_taps, bool bias) {
  const std::size_t width = plan_.buffer(in).width;
  Weight taps{tensor + ".weight", {width, n_taps}};
  taps.stored.taps = true;
  ShortConvStep conv{out, in, weight(std::move(taps)), state({n_taps - 1, width})};
  if (bias) conv.bias = weight({tensor + ".bias", {width}});
  step(std::move(name), conv);
}

void DecoderWriter::gate(BufferId in, const std::string& at, ActivateStep::Function function,
                         bool bias) {
  linear("gate", g, in, at + "gate_proj", bias);
  linear("up", u, in, at + "up_proj", bias);
  activate(function);
}

void DecoderWriter::stacked_gate(BufferId in, const std::string& tensor,
                                 ActivateStep::Function function, bool bias) {
  linear("gate", g, in, tensor, bias, rows_of(2 * sizes_.ffn_dim, 0));
  linear("up", u, in, tensor, bias, rows_of(2 * sizes_.ffn_dim, sizes_.ffn_dim));
  activate(function);
}

void DecoderWriter::activate(ActivateStep::Function function) {
  step(names_of(function).gated_step, ActivateStep{g, g, u, function});
}

void DecoderWriter::route(const std::string& prefix, BufferId in, const std::string& router,
                          const RouteStep& how, bool bias) {
  const std::size_t outputs = plan_.buffer(how.x).width, inputs = plan_.buffer(in).width;
  LinearStep scores{
      how.x, in, weight({.name = router + ".weight", .shape = {outputs, inputs}, .exact = true})};
  if (bias) {
    scores.bias = weight({.name = router + ".bias", .shape = {outputs}, .exact = true});
  }
  step(prefix + "router", scores);
  step(prefix + "routing_weights", how);
}

ExpertsStep::Expert DecoderWriter::expert(BufferId in, BufferId out, std::size_t width,
                                          const std::string& gate, const std::string& up,
                                          const std::string& down) {
  const std::size_t inputs = plan_.buffer(in).width, outputs = plan_.buffer(out).width;
  return {weight({gate + ".weight", {width, inputs}}), weight({up + ".weight", {width, inputs}}),
          weight({down + ".weight", {outputs, width}})};
}

void DecoderWriter::mlp(BufferId in, const std::string& first, const std::string& second,
                        ActivateStep::Function function, bool bias, const Storage& stored) {
  linear("up", g, in, first, bias, stored);
  step(names_of(function).step, ActivateStep{g, g, kNone, function});
  linear("down", o, g, second, bias, stored);
}

void DecoderWriter::add(std::string name, float scale) {
  step(std::move(name), AddStep{x, o, scale});
}

void DecoderWriter::logits(float scale, float soft_cap) {
  select();
  norm("final_norm", n, x, style_.final_norm);
  head(n, scale, soft_cap);
}

void DecoderWriter::select() {
  PlanWriter::layer(kNone);
  step("", SelectStep{x});
}

void DecoderWriter::head(BufferId in, float scale, float soft_cap) {
  plan_.logits = buffer("logits", sizes_.vocab_size);
  const bool mapped = scale != 1.0f || soft_cap != 0.0f;
  const char* const raw = soft_cap != 0.0f ? "uncapped_logits" : "unscaled_logits";
  LinearStep linear{plan_.logits, in, table(true, in)};
  if (style_.head_bias) linear.bias = weight({style_.head + ".bias", {sizes_.vocab_size}});
  step(mapped ? raw : "logits", linear);
  if (mapped) step("logits", MapStep{plan_.logits, scale, soft_cap});
}

}  // namespace stagecraft
