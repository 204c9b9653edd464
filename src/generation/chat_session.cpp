#include "generation/chat_session.h"

#include <algorithm>
#include <ranges>

#include "base/error.h"

namespace stagecraft {
namespace {

// Throws Error if the embedding has no row for one of these tokens.
void check_rows(const std::vector<TokenId>& tokens, const Tokenizer& tokenizer, const Plan& plan) {
  for (const TokenId token : tokens) {
    if (static_cast<std::size_t>(token) < plan.vocab_size) continue;
    throw Error("chat: expected a model with a row for token {} ({}), found vocab_size {}", token,
                printable(tokenizer.token_of(token), 40), plan.vocab_size);
  }
}

}  // namespace

ChatSession::ChatSession(Engine& engine, const Tokenizer& tokenizer, ChatFormat format,
                         std::size_t context)
    : tokenizer_(tokenizer), format_(std::move(format)), session_(engine, context) {
  check_rows(format_.end_tokens(), tokenizer, engine.plan());
}

TextResult ChatSession::say(std::string question, const TextOptions& options, Random& random,
                            const Listener& listener) {
  Conversation next = conversation_;
  next.exchanges.push_back({std::move(question), {}});
  return answer(std::move(next), options, random, listener);
}

TextResult ChatSession::retry(const TextOptions& options, Random& random,
                              const Listener& listener) {
  if (conversation_.exchanges.empty()) throw Error("there is no answer to repeat yet");
  Conversation next = conversation_;
  next.exchanges.back().answer.clear();
  return answer(std::move(next), options, random, listener);
}

// `conversation` ends in a question without an answer. With the answer, it becomes conversation_.
TextResult ChatSession::answer(Conversation conversation, TextOptions options, Random& random,
                               const Listener& listener) {
  GenerationOptions& generation = options.generation;
  const auto& ends = format_.end_tokens();
  generation.end_tokens.insert(generation.end_tokens.end(), ends.begin(), ends.end());
  const std::size_t n_exchanges = conversation.exchanges.size();
  const std::vector<TokenId> tokens = fit(conversation, generation.max_tokens);

  std::string& answer = conversation.exchanges.back().answer;
  bool stopped = false;
  const auto on_text = [&](std::string_view text) {
    answer += text;
    stopped = !listener.on_text(text);
    return !stopped;
  };
  TextResult result = chat_turn(tokenizer_, session_, tokens, options, random, on_text);
  if (stopped && answer.empty()) return result;
  conversation_ = std::move(conversation);
  const std::size_t forgotten = n_exchanges - conversation_.exchanges.size();
  if (forgotten > 0) listener.on_forgotten(forgotten);
  return result;
}

// The tokens of the conversation up to the opening of the last answer, which is still empty. If
// they leave no room for an answer of `answer_tokens` tokens (or of a quarter of the context, if
// that is less), the oldest exchanges are removed: at once more than needed, because the rest gets
// other positions and must be computed again.
std::vector<TokenId> ChatSession::fit(Conversation& conversation, std::size_t answer_tokens) const {
  auto& exchanges = conversation.exchanges;
  const auto tokens_without = [&](std::size_t forgotten) {
    return format_.tokens(messages_of(conversation, forgotten));
  };
  std::vector<TokenId> tokens = tokens_without(0);
  const std::size_t context = session_.context();
  if (tokens.size() + std::min(answer_tokens, context / 4) > context) {
    const auto counts = std::views::iota(std::size_t{0}, exchanges.size() - 1);
    const auto enough = std::ranges::partition_point(
        counts, [&](std::size_t n) { return tokens_without(n).size() > context / 2; });
    const auto forgotten = static_cast<std::size_t>(enough - counts.begin());
    tokens = tokens_without(forgotten);
    if (tokens.size() > context) {
      throw Error(
          "message: expected at most {} tokens (the context), found {} with the chat template and "
          "the system prompt",
          context, tokens.size());
    }
    exchanges.erase(exchanges.begin(), exchanges.begin() + static_cast<std::ptrdiff_t>(forgotten));
  }
  check_rows(tokens, tokenizer_, session_.engine().plan());
  return tokens;
}

}  // namespace stagecraft
