#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "model/config.h"
#include "model/config_fields.h"

namespace stagecraft {

// Fields of a config.json beyond those of a plain Llama.

// Throws Error: this field, with the value that it has, is not supported.
[[noreturn]] void refuse_field(const ConfigFields& fields, JsonNode value);

// Throws Error naming the first field whose value would change the arithmetic in a way that this
// engine does not implement (a logit scale, experts, quantised weights ...). honoured: fields of
// this kind that the architecture reads itself.
void refuse_foreign_arithmetic(const ConfigFields& fields,
                               std::initializer_list<std::string_view> honoured = {});

// Throws Error if the number of query heads is not a multiple of the number of key heads, or if
// head_dim is odd: RoPE rotates pairs of numbers.
// kv_name, dim_name: the names in the file of the number of key heads and of the size of a head.
void check_heads(const ConfigFields& fields, std::size_t n_heads, std::size_t n_kv_heads,
                 std::size_t head_dim, std::string_view kv_name = "num_key_value_heads",
                 std::string_view dim_name = "head_dim");

// Reads both styles of config.json: "rope_theta" and "rope_scaling" at the top, or both inside
// "rope_parameters".
// theta: the default if the file does not give it. honoured: fields inside the object, other than
// those of RopeConfig, that the architecture reads itself. If kAttentionFactor is one of them, rope
// type "yarn" is accepted, and the architecture must multiply the scale of attention by the square
// of RopeConfig::attention_factor.
inline constexpr std::string_view kAttentionFactor = "attention_factor";
RopeConfig parse_rope(const ConfigFields& top, std::size_t max_seq_len, double theta = 10'000.0,
                      std::span<const std::string_view> honoured = {});

// The object that parse_rope reads: "rope_scaling" if it is there and not empty, else
// "rope_parameters"; nullopt if there is neither.
std::optional<ConfigFields> rope_object(const ConfigFields& fields);

// The theta of RoPE; `usual` if the file does not give it.
double parse_theta(const ConfigFields& fields, std::string_view key, double usual);
// parse_rope for files that store this object and theta elsewhere.
RopeConfig parse_rope(const ConfigFields& top, const std::optional<ConfigFields>& object,
                      std::size_t max_seq_len, double theta,
                      std::span<const std::string_view> honoured);

// Throws Error if the file asks for RoPE of another type than the default one, "linear" or
// "llama3".
void refuse_stretched_rope(const ConfigFields& fields, const RopeConfig& rope);

// RoPE that rotates only the first columns of each head.
struct PartialRope {
  RopeConfig rope;
  std::size_t columns = 0;  // rotated columns per head, an even number from 2 to head_dim
};
// Names of fields and defaults that differ between architectures.
struct PartialRopeFields {
  std::string_view factor;  // the name of "partial_rotary_factor" at the top
  double usual;             // transformers' default for it
  std::string_view theta = "rope_theta";
  std::span<const std::string_view> honoured = {};  // as in parse_rope
};
// Reads the factor at the top (names.factor) or "partial_rotary_factor" in the object of RoPE,
// which takes precedence. Throws Error for rope types other than the default one, and for an odd
// number of columns.
PartialRope parse_partial_rope(const ConfigFields& fields, std::size_t max_seq_len,
                               std::size_t head_dim, const PartialRopeFields& names);

// The sliding window of each layer in positions; 0: no window. [config.n_layers]
// Needs config.model_type and config.n_layers.
std::vector<std::size_t> parse_windows(const ConfigFields& fields, const Config& config);

// "layer_types" of an architecture whose layers are either "full_attention" or `other`: true for
// "full_attention". [n_layers] Needs the field. Throws Error for a third type, or another number of
// layers.
std::vector<bool> parse_attention_layers(const ConfigFields& fields, std::size_t n_layers,
                                         std::string_view other);
// An array of layer numbers: true for the layers in it. [n_layers] nullopt if the field is missing.
std::optional<std::vector<bool>> parse_listed_layers(const ConfigFields& fields,
                                                     std::string_view key, std::size_t n_layers);
// True for each nth layer: the last of n layers, the last of the next n layers ... [n_layers]
std::vector<bool> every_nth_layer(std::size_t n_layers, std::size_t n);

// "sliding_window" in positions; `usual` is the default of transformers. Throws Error for null,
// which means no window: architectures that allow it ask before.
std::size_t parse_window(const ConfigFields& fields, std::size_t usual = 4096);
// "max_window_layers", by which older files of Qwen say which layers have a window. Not read if the
// file has "layer_types", which takes precedence.
std::size_t parse_max_window_layers(const ConfigFields& fields);
// The window of each layer; 0: no window. The layers that "layer_types" calls "sliding_attention"
// have `window`; without "layer_types", the layers i for which slides(i) is true. [n_layers]
// Throws Error as parse_attention_layers, or if `window` is 0 and "layer_types" has such a layer.
std::vector<std::size_t> parse_sliding_layers(const ConfigFields& fields, std::size_t n_layers,
                                              std::size_t window,
                                              const std::function<bool(std::size_t)>& slides);
// The same with "sliding_window" in all layers but each `pattern`th.
std::vector<std::size_t> parse_window_pattern(const ConfigFields& fields, std::size_t n_layers,
                                              std::size_t pattern, std::size_t usual = 4096);

// "eos_token_id": one token or several; empty if it is missing.
std::vector<TokenId> parse_eos_ids(const ConfigFields& fields, std::size_t vocab_size);

}  // namespace stagecraft
