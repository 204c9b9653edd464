// Right: tokens are taken off the cache until it is the beginning.
#include "generation/chat_turn.h"

#include "base/error.h"

namespace stagecraft {

TextResult chat_turn(const Tokenizer& tokenizer, Session& session,
                     std::span<const TokenId> conversation, const TextOptions& options,
                     Random& random, const std::function<bool(std::string_view)>& on_text) {
  if (conversation.empty() || conversation.size() > session.context()) {
    throw Error("chat: found a conversation of {} tokens", conversation.size());
  }
  const auto is_beginning = [&] {
    const auto held = session.tokens();
    if (held.size() >= conversation.size()) return false;
    for (std::size_t i = held.size(); i-- > 0;) {
      if (held[i] != conversation[i]) return false;
    }
    return true;
  };
  while (!is_beginning()) session.truncate(session.tokens().size() - 1);
  const std::size_t known = session.tokens().size();
  return generate_text(tokenizer, session, conversation.subspan(known), options, random, on_text);
}

}  // namespace stagecraft
