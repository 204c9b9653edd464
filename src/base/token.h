#pragma once

#include <cstdint>

namespace stagecraft {

// The id of a token: its row in the embedding table. A tokenizer turns text into ids; a model
// predicts the next id.
using TokenId = std::int32_t;

}  // namespace stagecraft
