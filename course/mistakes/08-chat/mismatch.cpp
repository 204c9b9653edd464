// Right: std::mismatch, and a truncate only where there is something to cut.
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
  const auto before_last = conversation.first(conversation.size() - 1);
  const auto parted =
      std::mismatch(held.begin(), held.end(), before_last.begin(), before_last.end()).first;
  const auto known = static_cast<std::size_t>(parted - held.begin());
  if (known < held.size()) session.truncate(known);
  return generate_text(tokenizer, session, conversation.subspan(known), options, random, on_text);
}

}  // namespace stagecraft
