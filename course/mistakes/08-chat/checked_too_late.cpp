// Mistake: the session is changed before the Error.
#include "generation/chat_turn.h"

namespace stagecraft {

TextResult chat_turn(const Tokenizer& tokenizer, Session& session,
                     std::span<const TokenId> conversation, const TextOptions& options,
                     Random& random, const std::function<bool(std::string_view)>& on_text) {
  const auto held = session.tokens();
  std::size_t known = 0;
  while (known < held.size() && known + 1 < conversation.size() &&
         held[known] == conversation[known]) {
    ++known;
  }
  session.truncate(known);
  return generate_text(tokenizer, session, conversation.subspan(known), options, random, on_text);
}

}  // namespace stagecraft
