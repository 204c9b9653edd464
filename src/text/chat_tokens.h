#pragma once

#include <span>
#include <string_view>

#include "text/tokenizer.h"

namespace stagecraft {

// The two tokens of ChatML's frame: the one before a role and the one after a content.
inline constexpr std::string_view kChatStart = "<|im_start|>";
inline constexpr std::string_view kChatEnd = "<|im_end|>";

// The id of kChatStart or kChatEnd. Throws Error naming the token if the tokenizer lacks either,
// for one alone frames nothing.
TokenId chat_token(const Tokenizer& tokenizer, std::string_view token);

// Throws Error if `text`, encoded as text, holds one of `control` all the same. That is so where
// the tokenizer does not mark it as special: then whoever types one has it.
void check_typed(const Tokenizer& tokenizer, std::string_view text,
                 std::span<const TokenId> control);
// The same for the two tokens above.
void check_typed(const Tokenizer& tokenizer, std::string_view text);

}  // namespace stagecraft
