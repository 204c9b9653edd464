#include "text/chat_tokens.h"

#include <algorithm>

#include "base/error.h"

namespace stagecraft {

TokenId chat_token(const Tokenizer& tokenizer, std::string_view token) {
  for (const std::string_view needed : {kChatStart, kChatEnd}) {
    if (tokenizer.id_of(needed)) continue;
    throw Error("chat template: expected a tokenizer with the tokens {} and {}, found no {}",
                kChatStart, kChatEnd, needed);
  }
  return *tokenizer.id_of(token);
}

void check_typed(const Tokenizer& tokenizer, std::string_view text,
                 std::span<const TokenId> control) {
  if (std::ranges::all_of(control, [&](TokenId id) { return tokenizer.is_special(id); })) return;
  for (const TokenId token : tokenizer.encode(text, {.parse_special = false, .at_start = false})) {
    if (std::ranges::count(control, token) == 0) continue;
    throw Error(
        "chat template: expected a tokenizer in which {} is a special token, found one that also "
        "makes it from typed text",
        tokenizer.token_of(token));
  }
}

}  // namespace stagecraft
