#include "text/chat_tokens.h"

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

void check_typed(const Tokenizer& tokenizer, std::string_view text) {
  const TokenId start = chat_token(tokenizer, kChatStart);
  const TokenId end = chat_token(tokenizer, kChatEnd);
  if (tokenizer.is_special(start) && tokenizer.is_special(end)) return;
  for (const TokenId token : tokenizer.encode(text, {.parse_special = false, .at_start = false})) {
    if (token != start && token != end) continue;
    throw Error(
        "chat template: expected a tokenizer in which {} is special, found one in which "
        "typing it makes it",
        tokenizer.token_of(token));
  }
}

}  // namespace stagecraft
