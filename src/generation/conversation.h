#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/chat_template.h"

namespace stagecraft {

// What was said in a chat: a system prompt perhaps, then question and answer in turn.
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

// Its messages from the exchange `first` on, the system prompt before them; the last answer is left
// out where it is empty: it is yet to be written.
std::vector<Message> messages_of(const Conversation& conversation, std::size_t first = 0);

// As a file keeps it: {"messages": [{"role": "user", "content": "..."}, ...]}, the form in which
// most programs that talk to chat models take and give conversations.
std::string to_json(const Conversation& conversation);

// The reverse; `where` names the text in errors. Throws Error naming the message that is wrong:
// system only as the first, then user and assistant in turn, ending with assistant.
Conversation parse_conversation(std::string_view text, const std::string& where);

}  // namespace stagecraft
