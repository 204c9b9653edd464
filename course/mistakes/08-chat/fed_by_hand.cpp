// Right: all but the last token is fed here, the last one by generate_text.
#include "generation/chat_turn.h"

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
  while (known < held.size() && known + 1 < conversation.size() &&
         held[known] == conversation[known]) {
    ++known;
  }
  session.truncate(known);
  const auto rest = conversation.subspan(known);
  TextResult result;
  if (!session.feed(rest.first(rest.size() - 1), [&] { return on_text({}); })) {
    result.reason = StopReason::Stopped;
  } else {
    result = generate_text(tokenizer, session, rest.last(1), options, random, on_text);
  }
  result.prompt_tokens = conversation.size() - known;
  if (result.reason == StopReason::Stopped && result.tokens.empty()) {
    result.prompt_tokens = session.tokens().size() - known;
  }
  return result;
}

}  // namespace stagecraft
