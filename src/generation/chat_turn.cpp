// This gives away stage 8: it is our answer to stages/08-chat/chat_turn.cpp.
#include "generation/chat_turn.h"

#include <algorithm>

#include "base/error.h"

namespace stagecraft {
namespace {

std::size_t common_prefix(std::span<const TokenId> a, std::span<const TokenId> b) {
  const auto [end, unused] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return static_cast<std::size_t>(end - a.begin());
}

}  // namespace

TextResult chat_turn(const Tokenizer& tokenizer, Session& session,
                     std::span<const TokenId> conversation, const TextOptions& options,
                     Random& random, const std::function<bool(std::string_view)>& on_text) {
  if (conversation.empty() || conversation.size() > session.context()) {
    throw Error("chat: expected a conversation of 1 to {} tokens, found {}", session.context(),
                conversation.size());
  }
  // The last token is always computed, because the answer begins with its logits.
  const std::size_t known = common_prefix(session.tokens(), conversation);
  const std::size_t kept = std::min(known, conversation.size() - 1);
  session.truncate(kept);
  const auto rest = conversation.subspan(kept);
  return generate_text(tokenizer, session, rest, options, random, on_text);
}

}  // namespace stagecraft
