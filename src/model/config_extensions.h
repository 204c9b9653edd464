#pragma once

#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "model/config.h"
#include "model/config_fields.h"

namespace stagecraft {

// What a config.json may say beyond the plain Llama shape.

// Throws Error: this field of a config, and what it says, are not supported.
[[noreturn]] void refuse_field(const ConfigFields& fields, JsonNode value);

// Throws Error naming the first value that would change the arithmetic in a way that this engine
// does not implement (a logit scale, experts, quantised weights ...). honoured: fields of such a
// kind that the architecture reads.
void refuse_foreign_arithmetic(const ConfigFields& fields,
                               std::initializer_list<std::string_view> honoured = {});

// Throws Error if these heads cannot be: keys that no whole number of query heads shares, or a head
// of an odd size, whose numbers RoPE cannot pair.
// kv_name, dim_name: what the file calls the number of key heads and the size of a head.
void check_heads(const ConfigFields& fields, std::size_t n_heads, std::size_t n_kv_heads,
                 std::size_t head_dim, std::string_view kv_name = "num_key_value_heads",
                 std::string_view dim_name = "head_dim");

// Both styles: "rope_theta" and "rope_scaling" at the top, or both inside "rope_parameters".
// theta: where the file does not say. honoured: fields beside the angles that the architecture
// reads. With kAttentionFactor among them it takes rope type "yarn", and multiplies the scale of
// attention by the square of RopeConfig::attention_factor.
inline constexpr std::string_view kAttentionFactor = "attention_factor";
RopeConfig parse_rope(const ConfigFields& top, std::size_t max_seq_len, double theta = 10'000.0,
                      std::span<const std::string_view> honoured = {});

// The object that parse_rope reads: "rope_scaling" where that says something, else
// "rope_parameters"; nullopt where neither is there.
std::optional<ConfigFields> rope_object(const ConfigFields& fields);

// The theta of RoPE; `usual` where the file does not say.
double parse_theta(const ConfigFields& fields, std::string_view key, double usual);
// parse_rope where that object and theta stand elsewhere.
RopeConfig parse_rope(const ConfigFields& top, const std::optional<ConfigFields>& object,
                      std::size_t max_seq_len, double theta,
                      std::span<const std::string_view> honoured);

// Rope of the first columns of each head.
struct PartialRope {
  RopeConfig rope;
  std::size_t columns = 0;  // of each head that are rotated, an even number from 2 to head_dim
};
// Where the names of the fields differ between architectures.
struct PartialRopeFields {
  std::string_view factor;  // "partial_rotary_factor", where it stands beside the other fields
  double usual;             // the factor that transformers takes where the file does not say
  std::string_view theta = "rope_theta";
  std::span<const std::string_view> honoured = {};  // more fields of the object, as in parse_rope
};
// "partial_rotary_factor" stands at the top or in "rope_parameters". Throws Error for rope types
// other than the default one, and for an odd number of columns.
PartialRope parse_partial_rope(const ConfigFields& fields, std::size_t max_seq_len,
                               std::size_t head_dim, const PartialRopeFields& names);

// Which layers look back only so far, as positions; 0: all the way. [config.n_layers]
// Needs config.model_type and config.n_layers.
std::vector<std::size_t> parse_windows(const ConfigFields& fields, const Config& config);

// "layer_types": `window` for each "sliding_attention", 0 for each "full_attention". [n_layers]
// Throws Error for another type, another number of layers, or a layer that slides without a window.
std::vector<std::size_t> parse_layer_types(const ConfigFields& fields, std::size_t n_layers,
                                           std::size_t window);

// "layer_types", or where it is not there, each `pattern`th layer looks back all the way and the
// others "sliding_window" positions. [n_layers]
std::vector<std::size_t> parse_sliding_layers(const ConfigFields& fields, std::size_t n_layers,
                                              std::size_t pattern);

// "eos_token_id": one token, several, or none.
std::vector<TokenId> parse_eos_ids(const ConfigFields& fields, std::size_t vocab_size);

}  // namespace stagecraft
