#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/token.h"
#include "model/config.h"
#include "model/config_fields.h"
#include "operators/activation_function.h"

namespace stagecraft {

// The fields of config.json that decoder-only models share. Each file of architectures/ parses
// those that fit, and the rest itself. Nothing here depends on the name of an architecture.

// The sizes that nearly every config.json contains.
struct DecoderSizes {
  std::size_t vocab_size = 0, dim = 0, ffn_dim = 0, n_layers = 0;
  std::size_t n_heads = 0, n_kv_heads = 0, head_dim = 0;
  std::size_t max_seq_len = 0;
  float norm_eps = 0.0f;
  bool tied = false;  // embedding and head are the same table
  std::vector<TokenId> eos_ids;

  std::size_t q_dim() const { return n_heads * head_dim; }
  std::size_t kv_dim() const { return n_kv_heads * head_dim; }
  // 1 / sqrt(head_dim): most architectures multiply attention scores by this.
  float score_scale() const;
  // The same times the square of the factor by which yarn multiplies q and k.
  float score_scale(const RopeConfig& rope) const;
};

// For architectures in which the number of heads determines these sizes: a file must not contain
// these fields.
inline constexpr std::string_view kSetByHeads[] = {"num_key_value_heads", "head_dim"};

// Defaults of transformers for fields that a file leaves out.
struct DecoderDefaults {
  std::size_t vocab_size;
  std::size_t max_seq_len;
  bool tied = false;
  double norm_eps = 1e-6;
  std::size_t n_kv_heads = 0;  // 0: as many as query heads
  std::size_t head_dim = 0;    // 0: hidden_size / num_attention_heads
  std::size_t ffn_factor = 0;  // default of ffn_dim / dim; 0: the file must give ffn_dim
  bool has_rope = true;
};

// The names of these fields in an architecture's config.json.
struct SizeNames {
  std::string_view dim = "hidden_size";
  std::string_view ffn_dim = "intermediate_size";
  std::string_view n_layers = "num_hidden_layers";
  std::string_view n_heads = "num_attention_heads";
  std::string_view n_kv_heads = "num_key_value_heads";
  std::string_view head_dim = "head_dim";
  std::string_view vocab_size = "vocab_size";
  std::string_view max_seq_len = "max_position_embeddings";
  std::string_view norm_eps = "rms_norm_eps";
};

// Throws Error naming the field that is missing, out of range or inconsistent with another.
DecoderSizes parse_sizes(const ConfigFields& fields, const DecoderDefaults& defaults,
                         const SizeNames& names = {});

// Throws Error if the number of query heads is not a multiple of the number of key heads, or if
// head_dim is odd: RoPE rotates pairs of numbers. (No released model without RoPE has odd heads.)
void check_heads(const ConfigFields& fields, std::size_t n_heads, std::size_t n_kv_heads,
                 std::size_t head_dim, const SizeNames& names = {}, bool has_rope = true);

// Throws Error: this field, with the value that it has, is not supported.
[[noreturn]] void refuse_config_field(const ConfigFields& fields, JsonNode value);

// The name that the file uses, if a field has two possible names. Throws Error if the file has both
// with different values.
std::string_view either_name(const ConfigFields& fields, std::string_view one,
                             std::string_view other);

// Throws Error unless `key` is absent or its value is one of `expected`.
void expect_text(const ConfigFields& fields, std::string_view key,
                 std::initializer_list<std::string_view> expected);
// expect_false throws Error if `key` is true, expect_true if it is false.
void expect_false(const ConfigFields& fields, std::string_view key);
void expect_true(const ConfigFields& fields, std::string_view key);

// Throws Error if one of `keys` is present; `expected` says what the file should have instead.
void expect_absent(const ConfigFields& fields, std::span<const std::string_view> keys,
                   std::string_view expected);
// The activation function that `key` names ("gelu_new", "gelu", ...).
// Throws Error for another function.
ActivationFunction parse_activation(const ConfigFields& fields, std::string_view key,
                                    std::string_view default_value);

// "clip_qkv"; nullopt if the file does not have it.
std::optional<float> parse_clip_qkv(const ConfigFields& fields);

}  // namespace stagecraft
