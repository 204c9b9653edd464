#include "generation/generate_text.h"

#include "base/stopwatch.h"
#include "generation/continuation.h"
#include "generation/visible_text.h"

namespace stagecraft {
namespace {

// generate() under a grammar.
StopReason generate_guided(Session& session, const TextOptions& options, Random& random,
                           const std::function<bool(TokenId)>& on_token) {
  const auto tokens = session.tokens();
  Continuation text({tokens.begin(), tokens.end()}, options.generation, random, session.context(),
                    options.grammar.get());
  std::vector<TokenProbability> scratch(session.logits().size());
  while (true) {
    const Continuation::Step step = text.next(session.logits(), scratch);
    if (step.token && !on_token(*step.token)) return StopReason::Stopped;
    if (step.end) return *step.end;
    session.feed(text.tokens().last(1));
  }
}

}  // namespace

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
  const auto take = [&](TokenId token) {
    if (result.tokens.empty()) result.first_token_seconds = watch.seconds();
    result.tokens.push_back(token);
    return show(visible.push(token)) && !visible.stopped();
  };
  result.reason = options.grammar ? generate_guided(session, options, random, take)
                                  : generate(session, options.generation, random, take);
  // After an interruption the rest is not wanted; else it is text like any other.
  if (result.reason != StopReason::Stopped) {
    show(visible.finish());
  }
  result.generation_seconds = watch.seconds() - result.prompt_seconds;
  return result;
}

}  // namespace stagecraft
