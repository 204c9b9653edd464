#include "generation/chat_session.h"

#include <algorithm>
#include <deque>
#include <numeric>

#include "base/error.h"

namespace stagecraft {
namespace {

void append(std::vector<TokenId>& tokens, const std::vector<TokenId>& more) {
  tokens.insert(tokens.end(), more.begin(), more.end());
}

}  // namespace

ChatSession::ChatSession(const Model& model, const Tokenizer& tokenizer, std::size_t context,
                         std::size_t n_threads)
    : tokenizer_(tokenizer), session_(model, context, n_threads) {
  chat_start_ = chat_token(tokenizer, kChatStart);
  chat_end_ = chat_token(tokenizer, kChatEnd);
  const TokenId largest = std::max(chat_start_, chat_end_);
  if (static_cast<std::size_t>(largest) >= model.config.vocab_size) {
    throw Error("chat: expected a model with a row for token {} ({}), found vocab_size {}", largest,
                tokenizer.token_of(largest), model.config.vocab_size);
  }
}

TextResult ChatSession::say(std::string question, const TextOptions& options, Random& random,
                            const Listener& listener) {
  Conversation next = conversation_;
  next.exchanges.push_back({std::move(question), {}});
  return answer(std::move(next), options, random, listener);
}

TextResult ChatSession::retry(const TextOptions& options, Random& random,
                              const Listener& listener) {
  if (conversation_.exchanges.empty()) throw Error("there is no answer yet to try again");
  Conversation next = conversation_;
  next.exchanges.back().answer.clear();
  return answer(std::move(next), options, random, listener);
}

// `conversation` ends in a question whose answer is to be written; it becomes ours with the answer.
TextResult ChatSession::answer(Conversation conversation, TextOptions options, Random& random,
                               const Listener& listener) {
  GenerationOptions& generation = options.generation;
  // A model that opens the next message instead of ending its own has ended it all the same.
  generation.end_tokens.insert(generation.end_tokens.end(), {chat_end_, chat_start_});
  const std::vector<TokenId> tokens = fit(conversation, generation.max_tokens, listener);

  std::string& answer = conversation.exchanges.back().answer;
  bool stopped = false;
  const auto on_text = [&](std::string_view text) {
    answer += text;
    stopped = !listener.on_text(text);
    return !stopped;
  };
  TextResult result = chat_turn(tokenizer_, session_, tokens, options, random, on_text);
  if (!stopped || !answer.empty()) conversation_ = std::move(conversation);
  return result;
}

// The tokens of the conversation up to the opening of the last answer. Where they leave no room
// for an answer of `answer_tokens`, or of a quarter of the context if that is less, the oldest
// exchanges are removed; more of them than needed at once, since what remains moves to other
// positions and must be computed again.
std::vector<TokenId> ChatSession::fit(Conversation& conversation, std::size_t answer_tokens,
                                      const Listener& listener) const {
  const auto tokens_of = [&](const Message& message) {
    check_typed(tokenizer_, message.content);
    return message_tokens(tokenizer_, message);
  };
  std::vector<TokenId> head, opening = answer_opening(tokenizer_);
  if (conversation.system) {
    head = tokens_of({"system", *conversation.system});
  }
  auto& exchanges = conversation.exchanges;
  std::vector<std::vector<TokenId>> parts;
  for (const auto& [question, answer] : exchanges) {
    parts.push_back(tokens_of({"user", question}));
    if (parts.size() == exchanges.size()) break;
    append(parts.back(), tokens_of({"assistant", answer}));
  }

  std::size_t total = head.size() + opening.size();
  for (const auto& part : parts) total += part.size();
  const std::size_t context = session_.context();
  std::size_t forgotten = 0;
  if (total + std::min(answer_tokens, context / 4) > context) {
    while (total > context / 2 && forgotten + 1 < parts.size()) total -= parts[forgotten++].size();
  }
  if (total > context) {
    throw Error(
        "the message has {} tokens and the system prompt {}: together more than the "
        "context of {}",
        parts.back().size() + opening.size(), head.size(), context);
  }
  if (forgotten > 0) {
    exchanges.erase(exchanges.begin(), exchanges.begin() + static_cast<std::ptrdiff_t>(forgotten));
    listener.on_forgotten(forgotten);
  }

  std::vector<TokenId> tokens = std::move(head);
  for (std::size_t i = forgotten; i < parts.size(); ++i) append(tokens, parts[i]);
  append(tokens, opening);
  return tokens;
}

}  // namespace stagecraft
