#pragma once

#include <array>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "model/config.h"
#include "model/config_fields.h"

namespace stagecraft {

// Fields of a config.json beyond those of a plain Llama.

// Throws Error naming the first field whose value would change the arithmetic in a way that this
// engine does not implement (a logit scale, experts, quantised weights ...). honoured: fields of
// this kind that the architecture reads itself.
void refuse_foreign_arithmetic(const ConfigFields& fields,
                               std::initializer_list<std::string_view> honoured = {});

inline constexpr std::string_view kAttentionFactor = "attention_factor";
inline constexpr std::array<std::string_view, 1> kYarn = {kAttentionFactor};
// Reads both styles of config.json: "rope_theta" and "rope_scaling" at the top, or both inside
// "rope_parameters".
// theta: the default if the file does not give it. honoured: fields inside the object, other than
// those of RopeConfig, that the architecture reads itself. With kYarn, rope type "yarn" is
// accepted, and the architecture must scale scores by DecoderSizes::score_scale(rope).
RopeConfig parse_rope(const ConfigFields& top, std::size_t max_seq_len, double theta = 10'000.0,
                      std::span<const std::string_view> honoured = {});

// The sliding window of each layer in positions; 0: no window. [config.n_layers]
// Needs config.model_type and config.n_layers.
std::vector<std::size_t> parse_windows(const ConfigFields& fields, const Config& config);

// "eos_token_id": one token or several; empty if it is missing.
std::vector<TokenId> parse_eos_ids(const ConfigFields& fields, std::size_t vocab_size);

}  // namespace stagecraft
