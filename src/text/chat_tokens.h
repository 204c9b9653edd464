#pragma once

#include <span>
#include <string_view>

#include "text/tokenizer.h"

namespace stagecraft {

// The two tokens of ChatML's frame: the one before a role and the one after a content.
inline constexpr std::string_view kChatStart = "<|im_start|>";
inline constexpr std::string_view kChatEnd = "<|im_end|>";

// The id of kChatStart or kChatEnd. Throws Error naming the missing token if the tokenizer lacks
// either: the frame needs both.
TokenId chat_token(const Tokenizer& tokenizer, std::string_view token);

// Throws Error if `text`, encoded as text, nevertheless holds one of the tokens `control`. This
// happens if the tokenizer does not mark them as special: then anybody could type them.
void check_typed(const Tokenizer& tokenizer, std::string_view text,
                 std::span<const TokenId> control);
// The same for the two tokens above.
void check_typed(const Tokenizer& tokenizer, std::string_view text);

}  // namespace stagecraft
