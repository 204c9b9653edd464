#include "generation/generate_text.h"

#include "base/stopwatch.h"
#include "generation/continuation.h"
#include "generation/visible_text.h"

namespace stagecraft {
namespace {

// As generate(), but with a grammar, LogitRules, and tokens that the backend has chosen, which the
// course's generate() does not support.
StopReason generate_more(Session& session, const TextOptions& options, Random& random,
                         const std::function<bool(TokenId)>& on_token) {
  const auto tokens = session.tokens();
  Continuation text({tokens.begin(), tokens.end()}, options.generation, random, session.context(),
                    options.grammar.get(), options.rules);
  std::vector<TokenProbability> scratch(session.logits().size());
  while (true) {
    const Continuation::Step step = next_token(session, text, scratch);
    const bool stopped = step.token && !on_token(*step.token);
    if (!stopped && !step.end) continue;
    random = text.random();
    return stopped ? StopReason::Stopped : *step.end;
  }
}

}  // namespace

StopReason generate_tokens(Session& session, const TextOptions& options, Random& random,
                           const std::function<bool(TokenId)>& on_token) {
  const bool is_chosen = session.likeliest() >= 0;  // by a GPU
  const bool is_plain = !options.grammar && options.rules.change_nothing() && !is_chosen;
  return is_plain ? generate(session, options.generation, random, on_token)
                  : generate_more(session, options, random, on_token);
}

TextResult generate_text(const Tokenizer& tokenizer, Session& session,
                         std::span<const TokenId> prompt, const TextOptions& options,
                         Random& random, const std::function<bool(std::string_view)>& on_text) {
  TextResult result;
  const std::size_t before = session.computed();
  const Stopwatch watch;
  const bool greedy = is_plain_greedy(options.generation, options.rules) && !options.grammar;
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
  result.reason = generate_tokens(session, options, random, take);
  // After an interruption, the text that is still held back is not wanted; otherwise it is ordinary
  // text.
  if (result.reason != StopReason::Stopped) {
    show(visible.finish());
  }
  result.generation_seconds = watch.seconds() - result.prompt_seconds;
  return result;
}

}  // namespace stagecraft
