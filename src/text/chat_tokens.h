#pragma once

#include <span>
#include <string_view>

#include "text/tokenizer.h"

namespace stagecraft {

// ChatML's two special tokens: the first stands before the role, the second after the content.
inline constexpr std::string_view kChatStart = "<|im_start|>";
inline constexpr std::string_view kChatEnd = "<|im_end|>";

// The id of kChatStart or kChatEnd. ChatML needs both: throws Error naming the missing token if the
// tokenizer lacks either.
TokenId chat_token(const Tokenizer& tokenizer, std::string_view token);

// Throws Error if `text`, encoded as plain text, nevertheless contains one of the tokens `control`.
// This happens if the tokenizer does not mark them as special: then any user could type them.
void check_typed(const Tokenizer& tokenizer, std::string_view text,
                 std::span<const TokenId> control);

}  // namespace stagecraft
