#include "generation/chat_turn.h"

#include <algorithm>

#include "base/error.h"
#include "base/stopwatch.h"

namespace stagecraft {
namespace {

constexpr std::size_t kTokensBetweenChecks = 64;

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
  const Stopwatch watch;

  // The last token is computed in any case: the scores that the answer begins with come from it.
  const std::size_t known = common_prefix(session.tokens(), conversation);
  session.truncate(std::min(known, conversation.size() - 1));

  // A long conversation takes a while to compute: in pieces, so that a person can stop it.
  TextResult computed;
  computed.reason = StopReason::Stopped;
  std::span<const TokenId> rest = conversation.subspan(session.tokens().size());
  while (rest.size() > kTokensBetweenChecks) {
    session.feed(rest.first(kTokensBetweenChecks));
    rest = rest.subspan(kTokensBetweenChecks);
    computed.prompt_tokens += kTokensBetweenChecks;
    computed.prompt_seconds = watch.seconds();
    if (!on_text({})) return computed;
  }

  TextResult result = generate_text(tokenizer, session, rest, options, random, on_text);
  result.prompt_tokens += computed.prompt_tokens;
  result.prompt_seconds += computed.prompt_seconds;
  if (!result.tokens.empty()) result.first_token_seconds += computed.prompt_seconds;
  return result;
}

}  // namespace stagecraft
