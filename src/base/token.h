#pragma once

#include <cstdint>

namespace stagecraft {

// A row of the embedding table; what a tokenizer makes of text and a model predicts.
using TokenId = std::int32_t;

}  // namespace stagecraft
