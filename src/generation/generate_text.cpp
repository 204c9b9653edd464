#include "generation/generate_text.h"

#include "base/stopwatch.h"
#include "generation/visible_text.h"

namespace stagecraft {

TextResult generate_text(const Tokenizer& tokenizer, Session& session,
                         std::span<const TokenId> prompt, const TextOptions& options,
                         Random& random, const std::function<bool(std::string_view)>& on_text) {
  TextResult result;
  const std::size_t before = session.tokens().size();
  const Stopwatch watch;
  const bool fed = session.feed(prompt, [&] { return on_text({}); });
  result.prompt_tokens = session.tokens().size() - before;
  result.prompt_seconds = watch.seconds();
  if (!fed) {
    result.reason = StopReason::Stopped;
    return result;
  }

  VisibleText visible(tokenizer, session.tokens(), options.stops);
  const auto show = [&](const std::string& text) { return text.empty() || on_text(text); };
  result.reason = generate(session, options.generation, random, [&](TokenId token) {
    if (result.tokens.empty()) result.first_token_seconds = watch.seconds();
    result.tokens.push_back(token);
    return show(visible.push(token)) && !visible.stopped();
  });
  // After an interruption the rest is not wanted; else it is text like any other.
  if (result.reason != StopReason::Stopped) {
    show(visible.finish());
  }
  result.generation_seconds = watch.seconds() - result.prompt_seconds;
  return result;
}

}  // namespace stagecraft
