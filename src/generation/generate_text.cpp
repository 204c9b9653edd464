#include "generation/generate_text.h"

#include "base/stopwatch.h"
#include "generation/continuation.h"
#include "generation/visible_text.h"

namespace stagecraft {
namespace {

// As generate(), but with a grammar and with tokens that the backend has chosen, which the course's
// generate() does not support.
StopReason generate_more(Session& session, const TextOptions& options, Random& random,
                         const std::function<bool(TokenId)>& on_token) {
  const auto tokens = session.tokens();
  Continuation text({tokens.begin(), tokens.end()}, options.generation, random, session.context(),
                    options.grammar.get());
  std::vector<TokenProbability> scratch(session.logits().size());
  while (true) {
    const Continuation::Step step = text.next(session.logits(), scratch, session.likeliest());
    random = text.random();
    if (step.token && !on_token(*step.token)) return StopReason::Stopped;
    if (step.end) return *step.end;
    if (text.is_greedy()) {
      session.feed_greedy(text.tokens().last(1));
    } else {
      session.feed(text.tokens().last(1));
    }
  }
}

}  // namespace

TextResult generate_text(const Tokenizer& tokenizer, Session& session,
                         std::span<const TokenId> prompt, const TextOptions& options,
                         Random& random, const std::function<bool(std::string_view)>& on_text) {
  TextResult result;
  const std::size_t before = session.computed();
  const Stopwatch watch;
  // The other backends compute the logits in the memory of the host, so there is no copy to avoid.
  const bool greedy = is_plain_greedy(options.generation) && !options.grammar &&
                      session.engine().options().backend == BackendKind::Cuda;
  const auto go_on = [&] { return on_text({}); };
  const bool fed = greedy ? session.feed_greedy(prompt, go_on) : session.feed(prompt, go_on);
  result.prompt_tokens = session.computed() - before;
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
  result.reason = options.grammar || greedy ? generate_more(session, options, random, take)
                                            : generate(session, options.generation, random, take);
  // After an interruption, the text that is still held back is not wanted; otherwise it is ordinary
  // text.
  if (result.reason != StopReason::Stopped) {
    show(visible.finish());
  }
  result.generation_seconds = watch.seconds() - result.prompt_seconds;
  return result;
}

}  // namespace stagecraft
