#include "generation/conversation.h"

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/json_text.h"

namespace stagecraft {
namespace {

nlohmann::json message_json(std::string_view role, const std::string& content) {
  return {{"role", role}, {"content", content}};
}

Message read_message(JsonNode json, const std::string& where) {
  if (!json.is_object()) {
    throw Error("{}: expected an object with role and content, found {}", where, json.describe());
  }
  Message message;
  for (const auto& [key, part] :
       {std::pair{"role", &message.role}, {"content", &message.content}}) {
    const std::optional<JsonNode> value = json.find(key);
    if (!value) throw Error("{}: expected '{}', found none", where, key);
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
  auto messages = nlohmann::json::array();
  if (conversation.system) messages.push_back(message_json("system", *conversation.system));
  for (const auto& [question, answer] : conversation.exchanges) {
    messages.push_back(message_json("user", question));
    messages.push_back(message_json("assistant", answer));
  }
  return json_text({{"messages", messages}}, 2) + "\n";
}

Conversation parse_conversation(std::string_view text, const std::string& where) {
  const Json json(text, where);
  const JsonNode root = json.root();
  const JsonNode messages = root.is_object() ? root.find("messages").value_or(root) : root;
  if (!messages.is_array() || root.is_array()) {
    throw Error("{}: expected an object with an array 'messages', found {}", where,
                messages.describe());
  }
  Conversation conversation;
  std::string expected = "user";
  std::size_t number = 0;
  for (const JsonNode element : messages.elements()) {
    const std::string here = fmt::format("{}: message {}", where, ++number);
    Message message = read_message(element, here);
    if (number == 1 && message.role == "system") {
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
