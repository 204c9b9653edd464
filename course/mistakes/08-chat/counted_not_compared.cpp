// Mistake: equal tokens are counted wherever they stand.
#include "generation/chat_turn.h"

#include <algorithm>

#include "base/error.h"

namespace stagecraft {

TextResult chat_turn(const Tokenizer& tokenizer, Session& session,
                     std::span<const TokenId> conversation, const TextOptions& options,
                     Random& random, const std::function<bool(std::string_view)>& on_text) {
  if (conversation.empty() || conversation.size() > session.context()) {
    throw Error("chat: found a conversation of {} tokens", conversation.size());
  }
  const auto held = session.tokens();
  std::size_t known = 0;
  for (std::size_t i = 0; i < std::min(held.size(), conversation.size() - 1); ++i) {
    known += held[i] == conversation[i];
  }
  session.truncate(known);
  return generate_text(tokenizer, session, conversation.subspan(known), options, random, on_text);
}

}  // namespace stagecraft
