#pragma once

#include <string>

#include "generation/chat_turn.h"
#include "generation/conversation.h"
#include "text/chat_format.h"

namespace stagecraft {

// A conversation with a model. The text is authoritative; the session's cache only holds what has
// been computed of it, and each turn computes what is new:
//
//   conversation   system | question answer | question answer | question <opening>
//   cache          ------------------------------------------>
//   computed now                                              ------------------->
//
// So the conversation may be changed at will between turns (undone, replaced, loaded): the answer
// is always the one that a fresh session would give to the same conversation.
class ChatSession {
 public:
  // context: the most tokens it can hold, answers included. Engine and tokenizer must outlive it.
  // Throws Error if the model has no row for the tokens of the format's frame.
  ChatSession(Engine& engine, const Tokenizer& tokenizer, ChatFormat format, std::size_t context);

  struct Listener {
    // Each piece of the answer; also called with an empty one now and then. False stops it.
    std::function<bool(std::string_view)> on_text;
    // The context was full: so many of the oldest exchanges are gone. Called before the answer.
    std::function<void(std::size_t exchanges)> on_forgotten = [](std::size_t) {};
  };

  // Asks and listens to the answer. Where there is no room for it, oldest exchanges are forgotten,
  // never the system prompt, until half the context is free. An answer that ends before the model
  // was done (by max_tokens, a stop text, the listener) stays as far as it came. One that the
  // listener stopped before its first character leaves the conversation as it was, and so does an
  // Error: a question that is no UTF-8, or that is too long even for an empty context.
  TextResult say(std::string question, const TextOptions& options, Random& random,
                 const Listener& listener);

  // Answers the last question anew; the conversation must have one.
  TextResult retry(const TextOptions& options, Random& random, const Listener& listener);

  Conversation& conversation() { return conversation_; }
  const Session& session() const { return session_; }
  const ChatFormat& format() const { return format_; }

 private:
  TextResult answer(Conversation conversation, TextOptions options, Random& random,
                    const Listener& listener);
  std::vector<TokenId> fit(Conversation& conversation, std::size_t answer_tokens,
                           const Listener& listener) const;

  const Tokenizer& tokenizer_;
  ChatFormat format_;
  Session session_;
  Conversation conversation_;
};

}  // namespace stagecraft
