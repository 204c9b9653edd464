#include "generation/conversation.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace stagecraft {
namespace {

TEST(Conversation, ComesBackFromJsonAsItWas) {
  const Conversation all = {"Be brief.\n", {{"hi", "Hello!"}, {"你好 \"\\ \t\x01", ""}}};
  for (const Conversation& conversation :
       {all, Conversation{}, Conversation{"", {}}, Conversation{std::nullopt, all.exchanges}}) {
    EXPECT_EQ(parse_conversation(to_json(conversation), "x.json"), conversation);
  }
}

TEST(Conversation, IsWrittenAsMessagesWithRoles) {
  EXPECT_EQ(to_json({std::nullopt, {{"hi", "Hello!"}}}), R"({
  "messages": [
    {
      "content": "hi",
      "role": "user"
    },
    {
      "content": "Hello!",
      "role": "assistant"
    }
  ]
}
)");
}

TEST(Conversation, RefusesBadFilesInOneLineThatSaysWhy) {
  const std::string user = R"({"role":"user","content":"hi"})";
  const std::string answer = R"({"role":"assistant","content":"ho"})";
  const std::string system = R"({"role":"system","content":"s"})";
  const auto file = [](const std::string& messages) { return "{\"messages\":[" + messages + "]}"; };
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "expected JSON, found nothing"},
      {"{\"messages\":[", "not valid JSON"},
      {"[]", "expected an object with an array 'messages', found an array of 0"},
      {"{}", "expected an object with an array 'messages', found an object"},
      {R"({"messages":"hi"})", "found \"hi\""},
      {file("1"), "message 1: expected an object with role and content, found 1"},
      {file(R"({"role":"user"})"), "message 1: expected 'content', found none"},
      {file(R"({"content":"hi"})"), "message 1: expected 'role', found none"},
      {file(R"({"role":"user","content":null})"), "message 1: expected 'content', found none"},
      {file(R"({"role":"user","content":[1]})"), "'content': expected a string"},
      {file(answer), "message 1: 'role': expected 'user', found 'assistant'"},
      {file(user + "," + user), "message 2: 'role': expected 'assistant', found 'user'"},
      {file(user), "expected an answer (role 'assistant') as the last message"},
      {file(user + "," + answer + "," + system), "message 3: 'role': expected 'user'"},
      {file(system + "," + system), "message 2: 'role': expected 'user', found 'system'"},
      {file(R"({"role":"tool","content":"x"})"), "found 'tool'"},
      {file(R"({"role":"a\u001b[2J","content":"x"})"), "found 'a\\x1b[2J'"},
      {file(R"({"role":"user","content":"\ud800"})"), "not valid JSON"},
      {file("{\"role\":\"user\",\"content\":\"\xff\"}"), "not valid JSON"},
      {file(R"({"role":"user","role":"user","content":"x"})"), "'messages[0].role' is given twice"},
      {std::string(100, '['), "nested deeper"},
  };
  for (const auto& [text, expected] : cases) {
    try {
      parse_conversation(text, "x.json");
      ADD_FAILURE() << "accepted: " << text;
    } catch (const Error& error) {
      const std::string message = error.what();
      EXPECT_TRUE(message.starts_with("x.json: ")) << message;
      EXPECT_NE(message.find(expected), std::string::npos) << message;
      EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    }
  }
}

}  // namespace
}  // namespace stagecraft
