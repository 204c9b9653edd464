#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/chat_template.h"

namespace stagecraft {

// The text of a chat: an optional system prompt, then question and answer in turn.
struct Conversation {
  struct Exchange {
    std::string question;
    std::string answer;
    bool operator==(const Exchange&) const = default;
  };

  std::optional<std::string> system;
  std::vector<Exchange> exchanges;

  bool operator==(const Conversation&) const = default;
};

// The messages of a conversation: the system prompt, then all from the exchange `first` on. An
// empty last answer is left out, because it is still to be generated.
std::vector<Message> messages_of(const Conversation& conversation, std::size_t first = 0);

// The conversation as JSON: {"messages": [{"role": "user", "content": "..."}, ...]}. Most programs
// for chat models read and write this form.
std::string to_json(const Conversation& conversation);

// The reverse of to_json; `where` names the text in errors. Throws Error naming the wrong message:
// "system" may only be the first, then "user" and "assistant" must alternate, and the last must be
// "assistant".
Conversation parse_conversation(std::string_view text, const std::string& where);

}  // namespace stagecraft
