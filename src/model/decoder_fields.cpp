#include "model/decoder_fields.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "model/config_extensions.h"

namespace stagecraft {

float DecoderSizes::score_scale() const { return 1.0f / std::sqrt(static_cast<float>(head_dim)); }

float DecoderSizes::score_scale(const RopeConfig& rope) const {
  return static_cast<float>(rope.attention_factor * rope.attention_factor) /
         std::sqrt(static_cast<float>(head_dim));
}

DecoderSizes parse_sizes(const ConfigFields& fields, const DecoderDefaults& defaults,
                         const SizeNames& names) {
  DecoderSizes c;
  c.vocab_size = fields.size_or(names.vocab_size, defaults.vocab_size);
  c.dim = fields.size(names.dim);
  c.ffn_dim = defaults.ffn_factor == 0 ? fields.size(names.ffn_dim)
                                       : fields.size_or(names.ffn_dim, defaults.ffn_factor * c.dim);
  c.n_layers = fields.size(names.n_layers, 1, kMaxLayers);
  c.n_heads = fields.size(names.n_heads);
  c.n_kv_heads =
      fields.size_or(names.n_kv_heads, defaults.n_kv_heads == 0 ? c.n_heads : defaults.n_kv_heads);
  if (fields.has(names.head_dim) || defaults.head_dim != 0) {
    c.head_dim = fields.size_or(names.head_dim, defaults.head_dim);
  } else if (c.dim % c.n_heads == 0) {
    c.head_dim = c.dim / c.n_heads;
  } else {
    throw Error("{}: '{}': expected a multiple of '{}' {}, found {}", fields.where(), names.dim,
                names.n_heads, c.n_heads, c.dim);
  }
  check_heads(fields, c.n_heads, c.n_kv_heads, c.head_dim, names, defaults.has_rope);
  c.max_seq_len = fields.size_or(names.max_seq_len, defaults.max_seq_len);
  c.norm_eps =
      static_cast<float>(fields.number_or(names.norm_eps, defaults.norm_eps, kMinEps, kMaxEps));
  c.tied = fields.flag_or("tie_word_embeddings", defaults.tied);
  c.eos_ids = parse_eos_ids(fields, c.vocab_size);
  return c;
}

void check_heads(const ConfigFields& fields, std::size_t n_heads, std::size_t n_kv_heads,
                 std::size_t head_dim, const SizeNames& names, bool has_rope) {
  if (n_heads % n_kv_heads != 0) {
    throw Error("{}: '{}': expected a multiple of '{}' {}, found {}", fields.where(), names.n_heads,
                names.n_kv_heads, n_kv_heads, n_heads);
  }
  if (head_dim % 2 == 0) return;
  const std::string_view reason = has_rope ? " (RoPE rotates pairs)" : "";
  if (fields.has(names.head_dim)) {
    throw Error("{}: '{}': expected an even number{}, found {}", fields.where(), names.head_dim,
                reason, head_dim);
  }
  throw Error("{}: '{}': expected an even multiple of '{}' {}{}, found {}", fields.where(),
              names.dim, names.n_heads, n_heads, reason, n_heads * head_dim);
}

void refuse_config_field(const ConfigFields& fields, JsonNode value) {
  throw Error("{}: '{}': {} is not supported", fields.where(), printable(value.key()),
              value.describe());
}

std::string_view either_name(const ConfigFields& fields, std::string_view one,
                             std::string_view other) {
  if (!fields.has(other)) return one;
  if (!fields.has(one) || fields.size(one) == fields.size(other)) return other;
  throw Error("{}: '{}': expected {} (the value of '{}'), found {}", fields.where(), one,
              fields.size(other), other, fields.size(one));
}

void expect_text(const ConfigFields& fields, std::string_view key,
                 std::initializer_list<std::string_view> expected) {
  if (!fields.has(key)) return;
  const std::string found = fields.text_or(key, "");
  if (std::ranges::find(expected, found) != expected.end()) return;
  throw Error("{}: '{}': expected '{}', found '{}'", fields.where(), key,
              fmt::join(expected, "' or '"), printable(found));
}

void expect_true(const ConfigFields& fields, std::string_view key) {
  if (!fields.flag_or(key, true)) {
    throw Error("{}: '{}': expected true, found false", fields.where(), key);
  }
}

void expect_false(const ConfigFields& fields, std::string_view key) {
  if (fields.flag_or(key, false)) {
    throw Error("{}: '{}': expected false, found true", fields.where(), key);
  }
}

void expect_absent(const ConfigFields& fields, std::span<const std::string_view> keys,
                   std::string_view expected) {
  for (const std::string_view key : keys) {
    if (!fields.has(key)) continue;
    throw Error("{}: '{}': expected {}, found {}", fields.where(), key, expected,
                fields.find(key)->describe());
  }
}

ActivationFunction parse_activation(const ConfigFields& fields, std::string_view key,
                                    std::string_view default_value) {
  const std::string name = fields.text_or(key, default_value);
  if (name == "gelu_new" || name == "gelu_fast" || name == "gelu_pytorch_tanh") {
    return ActivationFunction::GeluTanh;
  }
  if (name == "gelu") return ActivationFunction::Gelu;
  if (name == "silu" || name == "swish") return ActivationFunction::Silu;
  if (name == "relu") return ActivationFunction::Relu;
  throw Error(
      "{}: '{}': expected gelu, gelu_new, gelu_fast, gelu_pytorch_tanh, relu or silu, found '{}'",
      fields.where(), key, printable(name));
}

std::optional<float> parse_clip_qkv(const ConfigFields& fields) {
  constexpr double kMin = 1e-6, kMax = 1e6;
  if (!fields.has("clip_qkv")) return std::nullopt;
  return static_cast<float>(fields.number("clip_qkv", kMin, kMax));
}

}  // namespace stagecraft
