#include "generation/conversation.h"

#include "base/json.h"

namespace stagecraft {
namespace {

Json message_json(std::string_view role, const std::string& content) {
  return {{"role", role}, {"content", content}};
}

Message read_message(const Json& json, const std::string& where) {
  if (!json.is_object()) {
    throw Error("{}: expected an object with role and content, found {}", where,
                describe_json(json));
  }
  Message message;
  for (const auto& [key, part] :
       {std::pair{"role", &message.role}, {"content", &message.content}}) {
    const Json* value = find_member(json, key);
    if (value == nullptr) throw Error("{}: expected '{}', found none", where, key);
    *part = json_string(*value, where, key);
  }
  return message;
}

}  // namespace

std::vector<Message> messages_of(const Conversation& conversation, std::size_t first) {
  std::vector<Message> messages;
  if (conversation.system) messages.push_back({"system", *conversation.system});
  const auto& exchanges = conversation.exchanges;
  for (std::size_t i = first; i < exchanges.size(); ++i) {
    messages.push_back({"user", exchanges[i].question});
    const bool to_come = i + 1 == exchanges.size() && exchanges[i].answer.empty();
    if (!to_come) messages.push_back({"assistant", exchanges[i].answer});
  }
  return messages;
}

std::string to_json(const Conversation& conversation) {
  Json messages = Json::array();
  if (conversation.system) messages.push_back(message_json("system", *conversation.system));
  for (const auto& [question, answer] : conversation.exchanges) {
    messages.push_back(message_json("user", question));
    messages.push_back(message_json("assistant", answer));
  }
  return Json{{"messages", messages}}.dump(2) + "\n";
}

Conversation parse_conversation(std::string_view text, const std::string& where) {
  const Json root = parse_json(text, where);
  const Json* messages = find_member(root, "messages");
  if (messages == nullptr || !messages->is_array()) {
    throw Error("{}: expected an object with an array 'messages', found {}", where,
                describe_json(messages == nullptr ? root : *messages));
  }
  Conversation conversation;
  std::string expected = "user";
  for (std::size_t i = 0; i < messages->size(); ++i) {
    const std::string here = fmt::format("{}: message {}", where, i + 1);
    Message message = read_message((*messages)[i], here);
    if (i == 0 && message.role == "system") {
      conversation.system = std::move(message.content);
      continue;
    }
    if (message.role != expected) {
      throw Error("{}: 'role': expected '{}', found '{}'", here, expected, printable(message.role));
    }
    if (expected == "user") {
      conversation.exchanges.push_back({std::move(message.content), {}});
      expected = "assistant";
    } else {
      conversation.exchanges.back().answer = std::move(message.content);
      expected = "user";
    }
  }
  if (expected == "assistant") {
    throw Error("{}: expected an answer (role 'assistant') as the last message, found none", where);
  }
  return conversation;
}

}  // namespace stagecraft
