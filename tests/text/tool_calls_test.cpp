#include "text/tool_calls.h"

#include <gtest/gtest.h>

#include <ctime>
#include <random>

#include "base/error.h"
#include "tests/support/grammar_texts.h"

namespace stagecraft {
namespace {

ToolCallReader::Found read(ToolForm form, std::string_view text, std::size_t piece) {
  ToolCallReader reader(form);
  ToolCallReader::Found all;
  const auto add = [&](const ToolCallReader::Found& found) {
    all.text += found.text;
    all.calls.insert(all.calls.end(), found.calls.begin(), found.calls.end());
  };
  for (std::size_t at = 0; at < text.size(); at += piece) add(reader.push(text.substr(at, piece)));
  add(reader.finish());
  return all;
}

TEST(ToolCallReader, FindsCallsHoweverTheTextIsCut) {
  struct Case {
    ToolForm form;
    const char* text;
    const char* rest;
    std::vector<ToolCall> calls;
  };
  const Case cases[] = {
      {ToolForm::None, "<tool_call>{}", "<tool_call>{}", {}},
      {ToolForm::Tagged, "Hello < you", "Hello < you", {}},
      {ToolForm::Tagged,
       "I ask.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"b\": 1, \"a\": [\"</x>\"]}}\n"
       "</tool_call>\n<tool_call>{\"name\": \"g\", \"arguments\": {}}</tool_call>",
       "I ask.\n",
       {{"", "f", R"({"b":1,"a":["</x>"]})"}, {"", "g", "{}"}}},
      {ToolForm::Tagged, "<tool_call>{\"name\": \"g\", \"arguments\": {}}", "", {{"", "g", "{}"}}},
      {ToolForm::Tagged,  // the strings of a call may contain any text
       R"(<tool_call>{"name": "g", "arguments": {"a\"": "</tool_call>\\"}}</tool_call>)",
       "",
       {{"", "g", R"({"a\"":"</tool_call>\\"})"}}},
      {ToolForm::Tagged,
       "<tool_call>{\"name\": \"g\", \"argu</tool_call>",
       "<tool_call>{\"name\": \"g\", \"argu</tool_call>",
       {}},
      {ToolForm::Tagged,  // of a key that is given twice, the last value counts
       R"(<tool_call>{"name": "a", "arguments": {"name": "a", "param": "b", "param": "c"}})",
       "",
       {{"", "a", R"({"name":"a","param":"c"})"}}},
      {ToolForm::Bare,
       R"({"name": "f", "parameters": {"a": {"b": 1, "\u0062": [2]}, "c": {"a": 3}, "a": 4.50}})",
       "",
       {{"", "f", R"({"c":{"a":3},"a":4.50})"}}},
      {ToolForm::Bare,
       R"({"name": "f", "parameters": 5})",
       R"({"name": "f", "parameters": 5})",
       {}},
      {ToolForm::Tagged,
       R"(<tool_call>{"name": "g", "arguments": {}, "id": "1"}</tool_call>)",
       R"(<tool_call>{"name": "g", "arguments": {}, "id": "1"}</tool_call>)",
       {}},
      {ToolForm::Tagged,
       "<tool_call>{\"name\": \"g\"}</tool_call>!",
       "<tool_call>{\"name\": \"g\"}</tool_call>!",
       {}},
      {ToolForm::Tagged,
       "<tool_call>{\"name\": \"g\", \"argu",
       "<tool_call>{\"name\": \"g\", \"argu",
       {}},
      {ToolForm::Tagged, "<tool_ca", "<tool_ca", {}},
      {ToolForm::Bare, R"({"name": "f", "parameters": {"a": 1}})", "", {{"", "f", R"({"a":1})"}}},
      {ToolForm::Bare, R"({"name": "f", "para)", R"({"name": "f", "para)", {}},
      {ToolForm::Bare,
       R"(No {"name": "f", "parameters": {}})",
       R"(No {"name": "f", "parameters": {}})",
       {}},
  };
  for (const auto& [form, text, rest, calls] : cases) {
    for (const std::size_t piece : {1, 2, 3, 7, 1000}) {
      const ToolCallReader::Found found = read(form, text, piece);
      EXPECT_EQ(found.text, rest) << text << piece;
      EXPECT_EQ(found.calls, calls) << text << piece;
    }
  }
  const std::string deep =
      "<tool_call>{\"name\": \"g\", \"arguments\": {\"a\": " + std::string(100'000, '[') +
      "</tool_call>";
  EXPECT_EQ(read(ToolForm::Tagged, deep, 1000).text, deep);
}

// In 256 Ki pieces: 13 ms here, and 85 s if each piece searches the whole call again. The
// limit allows for sanitizers and a busy machine.
TEST(ToolCallReader, ReadsALongCallInTimeThatDoesNotExplode) {
  const std::string begin = "{\"name\": \"g\", \"arguments\": ", value(1 << 18, '<');
  const std::string call = "<tool_call>" + begin + "{\"a\": \"" + value + "\"}}</tool_call>";
  const std::clock_t start = std::clock();
  const ToolCallReader::Found found = read(ToolForm::Tagged, call, 1);
  EXPECT_LT(std::clock() - start, 5 * CLOCKS_PER_SEC);
  EXPECT_EQ(found.text, "");
  ASSERT_EQ(found.calls.size(), 1u);
  EXPECT_EQ(found.calls[0].arguments, "{\"a\":\"" + value + "\"}");
}

TEST(ToolCallReader, TakesArgumentsOfAnyDepth) {
  const std::string value = std::string(100'000, '[') + std::string(100'000, ']');
  const std::string call = "{\"name\": \"g\", \"parameters\": {\"a\": " + value + "}}";
  const ToolCallReader::Found found = read(ToolForm::Bare, call, call.size());
  ASSERT_EQ(found.calls.size(), 1u);
  EXPECT_EQ(found.calls[0].arguments, "{\"a\":" + value + "}");
}

TEST(ToolGrammar, AllowsTextAndCallsOrCallsAlone) {
  const Json schema(R"({"type": "object", "properties": {"a": {"const": 1}}, "required": ["a"]})",
                    "schema");
  const std::vector<Tool> tools = {{"f", schema.root()}, {"g", std::nullopt}};
  const auto grammar = [&](ToolForm form, bool forced, bool several) {
    return Grammar::parse(tool_gbnf(form, tools, {.forced = forced, .several = several}), "tools");
  };
  const std::string f = "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\":1}}\n</tool_call>";
  const std::string g = "<tool_call>\n{\"name\": \"g\", \"arguments\": {}}\n</tool_call>";
  const Grammar automatic = grammar(ToolForm::Tagged, false, true);
  for (const std::string& text : {std::string(), std::string("a < b <tool <<tool_cal"), f,
                                  "So:\n" + g, f + "\n" + g, "<" + f, "<tool_call" + g}) {
    EXPECT_TRUE(matches(automatic, text)) << text;
  }
  for (const std::string& text :
       {std::string("<tool_call>"), "x<tool_call>{}</tool_call>" + f, f + "!", f + f.substr(5)}) {
    EXPECT_FALSE(matches(automatic, text)) << text;
  }
  const Grammar forced = grammar(ToolForm::Tagged, true, false);
  EXPECT_TRUE(matches(forced, f) && matches(forced, g));
  EXPECT_FALSE(matches(forced, f + "\n" + g) || matches(forced, "") || matches(forced, "x" + f));
  const std::string bare = R"({"name": "f", "parameters": {"a":1}})";
  const Grammar llama = grammar(ToolForm::Bare, false, true);
  EXPECT_TRUE(matches(llama, bare) && matches(llama, "") && matches(llama, "Yes {}."));
  EXPECT_FALSE(matches(llama, "{}") || matches(llama, bare + "."));
}

TEST(ToolGrammar, AllowsSixteenCallsAndNoMore) {
  const Grammar grammar = Grammar::parse(
      tool_gbnf(ToolForm::Tagged, {{"g", std::nullopt}}, {.forced = true, .several = true}),
      "tools");
  std::string calls;
  for (int i = 0; i < 16; ++i) {
    calls += R"(<tool_call>{"name": "g", "arguments": {}}</tool_call>)";
    EXPECT_TRUE(matches(grammar, calls)) << i;
  }
  EXPECT_FALSE(matches(grammar, calls + calls.substr(0, calls.size() / 16)));
}

Grammar forced_call(std::string_view parameters) {
  const Json schema(parameters, "schema");
  return Grammar::parse(tool_gbnf(ToolForm::Bare, {{"f", schema.root()}}, {.forced = true}),
                        "tools");
}

TEST(ToolGrammar, AllowsOnlyObjectsAsArguments) {
  const auto call = [](std::string_view arguments) {
    return fmt::format(R"({{"name": "f", "parameters": {}}})", arguments);
  };
  // A schema for any value stands for any object.
  for (const char* any : {"{}", "true", R"({"description": "x"})"}) {
    const Grammar grammar = forced_call(any);
    EXPECT_TRUE(matches(grammar, call("{}")) && matches(grammar, call(R"({"a":[1]})"))) << any;
    EXPECT_FALSE(matches(grammar, call("5")) || matches(grammar, call("[]"))) << any;
  }
  for (const char* objects :
       {R"({"properties": {"a": {}}})", R"({"type": ["object"]})", R"({"enum": [{}, {"a": 1}]})",
        R"({"const": {}})", R"({"anyOf": [{"type": "object"}, {"const": {}}]})",
        R"({"$ref": "#/$defs/x", "$defs": {"x": {"anyOf": [{"const": {}}, {"$ref": "#/$defs/y"}]},
                                           "y": {"type": "object"}}})"}) {
    EXPECT_TRUE(matches(forced_call(objects), call("{}"))) << objects;
  }
}

TEST(ToolGrammar, AllowsOnlyTextsThatAreReadAsCalls) {
  std::mt19937 random(5);
  for (
      const char* parameters :
      {"{}", R"({"properties": {"a": {}, "b": {"type": "number"}}, "additionalProperties": true})",
       R"({"const": {"</tool_call>": "\\\" </tool_call>"}})",
       R"({"properties": {"a": {"$ref": "#"}, "b": {"type": "string", "pattern": "^[<\"]*$"}}})"}) {
    const Json schema(parameters, "schema");
    for (const ToolForm form : {ToolForm::Tagged, ToolForm::Bare}) {
      ByteAutomaton automaton(std::make_shared<const Grammar>(Grammar::parse(
          tool_gbnf(form, {{"f", schema.root()}}, {.forced = true, .several = true}), "tools")));
      int n_found = 0;
      for (int i = 0; i < 40; ++i) {
        const std::optional<std::string> text = random_text(automaton, random, 4000);
        if (!text) continue;
        const ToolCallReader::Found found = read(form, *text, 1 + random() % 9);
        ASSERT_EQ(found.text, "") << *text;
        ASSERT_FALSE(found.calls.empty()) << *text;
        for (const ToolCall& call : found.calls) {
          // A client may send it back, which no repeated key must prevent.
          EXPECT_NO_THROW(parse_json_object(call.arguments, "arguments")) << *text;
        }
        ++n_found;
      }
      EXPECT_GT(n_found, 0) << parameters;
    }
  }
}

TEST(ToolGrammar, AllowsCallsOrTextsOfASchemaThatAreNotReadAsCalls) {
  const Json parameters(R"({"properties": {"a": {"const": 1}}})", "schema");
  const std::vector<Tool> tools = {{"f", parameters.root()}};
  const std::string call = R"(<tool_call>{"name": "f", "arguments": {"a":1}}</tool_call>)";
  std::mt19937 random(9);
  for (const char* schema :
       {R"({"properties": {"a": {"type": "integer"}}, "required": ["a"]})", "{}",
        R"({"const": {"<tool_call>": "{\"name\": \"f\", \"arguments\": {}}</tool_call>"}})",
        R"({"type": "array", "items": {"enum": ["<tool_call>{", "name", ":", "</tool_call>"]}})"}) {
    const Json text_schema(schema, "schema");
    const auto grammar = [&](bool forced) {
      return Grammar::parse(
          tool_gbnf(ToolForm::Tagged, tools,
                    {.forced = forced, .several = true, .text_schema = text_schema.root()}),
          "tools");
    };
    const Grammar automatic = grammar(false);
    EXPECT_TRUE(matches(automatic, call) && matches(automatic, call + call)) << schema;
    EXPECT_FALSE(matches(automatic, "") || matches(automatic, "So: " + call)) << schema;
    EXPECT_TRUE(matches(grammar(true), call)) << schema;
    ByteAutomaton all(std::make_shared<const Grammar>(automatic));
    ByteAutomaton forced(std::make_shared<const Grammar>(grammar(true)));
    int n_texts = 0;
    for (int i = 0; i < 60; ++i) {
      const std::optional<std::string> text = random_text(all, random, 4000);
      if (!text) continue;
      const ToolCallReader::Found found = read(ToolForm::Tagged, *text, 1 + random() % 9);
      if (text->starts_with("<tool_call>")) {
        EXPECT_TRUE(found.text.empty() && !found.calls.empty()) << *text;
      } else {
        EXPECT_EQ(found.text, *text);
        EXPECT_TRUE(found.calls.empty()) << *text;
        ++n_texts;
      }
      const std::optional<std::string> must = random_text(forced, random, 4000);
      EXPECT_TRUE(!must || must->starts_with("<tool_call>"));
    }
    EXPECT_GT(n_texts, 0) << schema;
  }
}

TEST(ToolGrammar, RefusesArgumentsThatAreNoObjects) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"type": "string"})", "schema: type: expected \"object\", found \"string\""},
      {R"({"type": "array"})", "schema: type: expected \"object\", found \"array\""},
      {R"({"type": ["object", "null"]})", "schema: type[1]: expected \"object\", found \"null\""},
      {R"({"items": {}})",
       "schema: expected a schema of objects (\"type\": \"object\"), found one without a type"},
      {R"({"const": [1]})", "schema: const: expected an object, found an array of 1"},
      {R"({"const": null})", "schema: const: expected an object, found null"},
      {R"({"enum": [{}, 1]})", "schema: enum[1]: expected an object, found 1"},
      {R"({"anyOf": [{"type": "object"}, {}]})",
       "schema: anyOf[1]: expected a schema of objects (\"type\": \"object\"), found one without a "
       "type"},
      {R"({"oneOf": [true]})",
       "schema: oneOf[0]: expected a schema of objects (\"type\": \"object\"), found true"},
      {R"({"$ref": "#/$defs/x", "$defs": {"x": {"type": "integer"}}})",
       "schema: $defs.x.type: expected \"object\", found \"integer\""},
  };
  for (const auto& [schema, message] : cases) {
    try {
      forced_call(schema);
      ADD_FAILURE() << schema;
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), message);
    }
  }
}

}  // namespace
}  // namespace stagecraft
