#include "serve/response_request.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "serve/api_error.h"
#include "tests/support/tiny_chat_model.h"

namespace stagecraft {
namespace {

TEST(ResponseRequest, NamesTheFieldsOfTheRequestInErrors) {
  const TinyChatModel folder;
  const Tokenizer tokenizer = Tokenizer::open(folder.folder());
  const ChatFormat format = chatml_format(tokenizer);
  TokenGrammars grammars(tokenizer);
  ServedModel model;
  model.names = {"tiny"};
  model.tokenizer = &tokenizer;
  model.chat = &format;
  model.grammars = &grammars;
  model.vocab_size = tokenizer.vocab_size();
  model.context = 100;

  const auto refused = [&](const std::string& body) -> std::string {
    try {
      parse_response(body, model, 1);
    } catch (const ApiError& error) {
      EXPECT_EQ(error.status(), 400);
      return error.param() + "|" + error.what();
    }
    return "accepted";
  };
  const std::string user = R"({"role": "user", "content": "x"})";
  const std::string call =
      R"({"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"})";
  const auto input = [](const std::string& items) { return R"({"input": [)" + items + "]}"; };
  const auto beside = [](const std::string& more) { return R"({"input": "x", )" + more + "}"; };
  EXPECT_EQ(refused(beside(R"("instructions": "y", "text": {"format": {"type": "text"}})")),
            "accepted");
  EXPECT_EQ(refused(input(user)), "accepted");
  const std::string answer = R"({"role": "assistant", "content": [{"type": "output_text",
                                 "text": "y", "annotations": [], "logprobs": []}]})";
  EXPECT_EQ(refused(input(user + "," + answer + "," + user)), "accepted");

  const std::string reasoning = R"({"type": "reasoning", "id": "r", "summary": [],
      "encrypted_content": "x", "content": [{"type": "reasoning_text", "text": "hm"}]})";
  EXPECT_EQ(refused(input(user + "," + reasoning + "," + answer + "," + user)), "accepted");
  EXPECT_EQ(refused(beside(R"("stream": true, "stream_options": {"include_obfuscation": false},
                              "max_tool_calls": 3, "text": {"verbosity": "medium"},
                              "include": ["reasoning.encrypted_content"],
                              "prompt_cache_retention": "24h")")),
            "accepted");

  model.defaults.generation.sampler = {0.75f, 40, 0.95f};
  const auto echo = [&](const std::string& more) {
    return nlohmann::json::parse(parse_response(beside(more), model, 1).echo);
  };
  EXPECT_EQ(echo(R"("store": false)")["temperature"], 0.75);
  EXPECT_EQ(echo(R"("store": false)")["top_p"], 0.95);
  EXPECT_EQ(echo(R"("top_p": 0.5)")["top_p"], 0.5);

  const std::vector<std::pair<std::string, std::string>> cases = {
      {"{}", "input|request: 'input': expected a string or an array of items, found none"},
      {R"({"input": 5})",
       "input|request: 'input': expected a string or an array of items, found 5"},
      {input(""),
       "input|request: 'input': expected an array of at least one message, found an array of 0"},
      {input(R"({"role": "user", "content": "x", "tone": 1})"),
       "input[0].tone|request: 'input[0].tone': unknown field"},
      {input(R"({"role": "user", "content": [{"type": "input_text", "text": "x", "tone": 1}]})"),
       "input[0].content[0].tone|request: 'input[0].content[0].tone': unknown field"},
      {input(R"({"role": "user"})"),
       "input[0].content|request: 'input[0].content': expected a string or an array, found none"},
      {input(R"({"type": "item_reference"})"),
       "input[0].type|request: 'input[0].type': expected 'message', 'reasoning', 'function_call' "
       "or "
       "'function_call_output', found \"item_reference\""},
      {input("5"), "input[0]|request: 'input[0]': expected an object, found 5"},
      {input(R"({"role": "user", "content": 5})"),
       "input[0].content|request: 'input[0].content': expected a string, found 5"},
      {input(call), "input|request: 'input': expected a result of each call, found none of 'c'"},
      {beside(R"("chat_template_kwargs": {"think": true})"),
       "chat_template_kwargs.think|request: 'chat_template_kwargs.think': not supported: the chat "
       "template of this model has no such variable"},
      {beside(R"("reasoning": {"effort": "low"})"),
       "reasoning.effort|request: 'reasoning.effort': not supported: the chat template of this "
       "model has no such variable"},
      {beside(R"("reasoning": {"effort": "low", "summary": "auto"})"),
       "reasoning.summary|request: 'reasoning.summary': not supported, found \"auto\""},
      {beside(R"("reasoning": 5)"), "reasoning|request: 'reasoning': expected an object, found 5"},
      {input(user + R"(, {"type": "function_call", "call_id": 5, "name": "f", "arguments": "{}"})"),
       "input[1].call_id|request: 'input[1].call_id': expected a string, found 5"},
      {input(user + "," + call +
             R"(, {"type": "function_call", "call_id": "d", "name": "g h", "arguments": "{}"})"),
       "input[2].name|request: 'input[2].name': expected 1 to 64 letters, digits, _ or -, found "
       "\"g h\""},
      {input(user +
             R"(, {"type": "function_call", "call_id": "c", "name": "f", "arguments": "x"})"),
       "input[1].arguments|request: 'input[1].arguments': not valid JSON: line 1"},
      {input(user + "," + call +
             R"(, {"type": "function_call_output", "call_id": "d", "output": ""})"),
       "input[2].call_id|request: 'input[2].call_id': expected the id of a call before it that "
       "has no result yet, found \"d\""},
      {input(user + R"(, {"type": "function_call_output", "call_id": "d", "output": ""})"),
       "input[1]|request: 'input[1]': expected a call before this result, found none"},
      {input(user + "," + call + "," + user),
       "input[2].role|request: 'input[2].role': expected the results of the calls before it, "
       "found \"user\""},
      {input(R"({"type": "reasoning", "content": [{"type": "text", "text": "x"}]})"),
       "input[0].content[0]|request: 'input[0].content[0]': expected a part of the type "
       "'reasoning_text', found an object"},
      {beside(R"("text": {"verbosity": "low"})"),
       "text.verbosity|request: 'text.verbosity': not supported: the chat template of this model "
       "has no such variable"},
      {beside(R"("include": ["message.output_text.logprobs"])"),
       "include|request: 'include': not "},
      {beside(R"("stream_options": {"include_usage": true})"),
       "stream_options.include_usage|request: 'stream_options.include_usage': unknown field"},
      {input(user + "," + call +
             R"(, {"type": "function_call_output", "call_id": "c", "output": 5})"),
       "input[2].output|request: 'input[2].output': expected a string, found 5"},
      {R"({"input": ")" + std::string(200, 'x') + "\"}",
       "input|request: 'input': expected 1 to 100 tokens (the context), found 2"},
      {beside(R"("instructions": 5)"),
       "instructions|request: 'instructions': expected a string, found 5"},
      {R"({"instructions": "y", "input": [{"role": "tool", "content": "x"}]})",
       "input[0].role|request: 'input[0].role': expected a call before this result, found none"},
      {beside(R"("max_output_tokens": "x")"),
       "max_output_tokens|request: 'max_output_tokens': expected a whole number from 1 to "
       "10000000, "
       "found \"x\""},
      {beside(R"("text": 5)"), "text|request: 'text': expected an object, found 5"},
      {beside(R"("text": {"format": {"type": "xml"}})"),
       "text.format.type|request: 'text.format.type': expected 'text', 'json_object' or "
       "'json_schema', found \"xml\""},
      {beside(R"("text": {"format": {"type": "json_schema", "name": "x"}})"),
       "text.format.schema|request: 'text.format.schema': expected a JSON Schema, found none"},
      {beside(R"("text": {"format": {"type": "json_schema", "schema": {"not": {}}}})"),
       "text.format|request: text.format.schema.not: not supported in a schema"},
      {beside(R"("text": {"format": {"type": "json_schema", "schema": {}, "messages": 1}})"),
       "text.format.messages|request: 'text.format.messages': unknown field"},
      {beside(R"("tools": 5)"), "tools|request: 'tools': expected an array of functions, found 5"},
      {beside(R"("tools": [{"type": "function", "name": 5}])"),
       "tools[0].name|request: 'tools[0].name': expected a string, found 5"},
      {beside(R"("tools": [{"type": "function", "name": "f"}, {"type": "function", "name": "f"}])"),
       "tools[1].name|request: 'tools[1].name': expected a name that no tool before it has, found "
       "\"f\""},
      {beside(R"("tools": [{"type": "function", "name": "f", "x": 1}])"),
       "tools[0].x|request: 'tools[0].x': unknown field"},
      {beside(R"("store": true)"), "store|request: 'store': not supported, found true"},
      {beside(R"("tempreature": 1)"), "tempreature|request: 'tempreature': unknown field"},
  };
  for (const auto& [body, message] : cases) {
    EXPECT_EQ(refused(body).substr(0, message.size()), message) << body;
  }
}

}  // namespace
}  // namespace stagecraft
