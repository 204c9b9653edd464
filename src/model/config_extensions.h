#pragma once

#include <vector>

#include "model/config.h"
#include "model/config_fields.h"

namespace stagecraft {

// What a config.json may say beyond the plain Llama shape.

// Throws Error naming the first value that would change the arithmetic in a way that this engine
// does not implement (a logit scale, experts, quantised weights ...).
void refuse_foreign_arithmetic(const ConfigFields& fields);

// Both styles: "rope_theta" and "rope_scaling" at the top, or both inside "rope_parameters".
RopeConfig parse_rope(const ConfigFields& top, std::size_t max_seq_len);

// Which layers look back only so far, as positions; 0: all the way. [config.n_layers]
// Needs config.model_type and config.n_layers.
std::vector<std::size_t> parse_windows(const ConfigFields& fields, const Config& config);

// "eos_token_id": one token, several, or none.
std::vector<TokenId> parse_eos_ids(const ConfigFields& fields, std::size_t vocab_size);

}  // namespace stagecraft
