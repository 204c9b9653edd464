// Mistake: everything is computed anew each turn.
#include "generation/chat_turn.h"

#include "base/error.h"

namespace stagecraft {

TextResult chat_turn(const Tokenizer& tokenizer, Session& session,
                     std::span<const TokenId> conversation, const TextOptions& options,
                     Random& random, const std::function<bool(std::string_view)>& on_text) {
  if (conversation.empty() || conversation.size() > session.context()) {
    throw Error("chat: found a conversation of {} tokens", conversation.size());
  }
  const std::size_t known = 0;
  session.truncate(0);
  return generate_text(tokenizer, session, conversation.subspan(known), options, random, on_text);
}

}  // namespace stagecraft
