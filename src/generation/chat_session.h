#pragma once

#include <string>

#include "generation/chat_turn.h"
#include "generation/conversation.h"
#include "text/chat_format.h"

namespace stagecraft {

// A conversation with a model. The text of the conversation is authoritative. The cache of the
// session only holds results for a part of it, and each turn computes the rest:
//
//   conversation   system | question answer | question answer | question <opening>
//   cache          ------------------------------------------>
//   computed now                                              ------------------->
//
// So the conversation may be changed freely between turns (undone, replaced, loaded): the answer is
// always the answer of a fresh session to the same conversation.
class ChatSession {
 public:
  // context: the most tokens of a conversation, answers included. Engine and tokenizer must outlive
  // the session. Throws Error if the embedding has no row for a token of the chat format.
  ChatSession(Engine& engine, const Tokenizer& tokenizer, ChatFormat format, std::size_t context);

  struct Listener {
    // Called with each piece of the answer, and now and then with an empty piece. If it returns
    // false, the answer stops.
    std::function<bool(std::string_view)> on_text;
    // The context was full, and this number of the oldest exchanges was removed. Called after the
    // answer: if the answer stops before its first character, nothing is removed.
    std::function<void(std::size_t exchanges)> on_forgotten = [](std::size_t) {};
  };

  // Asks a question and generates the answer. If the context has no room for the answer, the oldest
  // exchanges are removed until half the context is free; the system prompt stays. If an answer is
  // stopped early (by max_tokens, a stop text or the listener), its text so far is kept. If the
  // listener stops it before its first character, the conversation stays unchanged. It also stays
  // unchanged if an Error is thrown: the question is not UTF-8, or is too long even for an empty
  // context.
  TextResult say(std::string question, const TextOptions& options, Random& random,
                 const Listener& listener);

  // Generates a new answer to the last question. Throws Error if there is no question.
  TextResult retry(const TextOptions& options, Random& random, const Listener& listener);

  Conversation& conversation() { return conversation_; }
  const Session& session() const { return session_; }
  const ChatFormat& format() const { return format_; }

 private:
  TextResult answer(Conversation conversation, TextOptions options, Random& random,
                    const Listener& listener);
  std::vector<TokenId> fit(Conversation& conversation, std::size_t answer_tokens) const;

  const Tokenizer& tokenizer_;
  ChatFormat format_;
  Session session_;
  Conversation conversation_;
};

}  // namespace stagecraft
