#include "serve/api_request.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "checkpoint/model_source.h"
#include "serve/api_error.h"
#include "tests/support/grammar_texts.h"
#include "tests/support/tiny_chat_model.h"

namespace stagecraft {
namespace {

using nlohmann::json;

class ApiRequest : public testing::Test {
 protected:
  ApiRequest()
      : tokenizer_(Tokenizer::open(folder_.folder())),
        format_(chatml_format(tokenizer_)),
        grammars_(tokenizer_) {
    model_.grammars = &grammars_;
    model_.names = {"tiny", "also"};
    model_.tokenizer = &tokenizer_;
    model_.chat = &format_;
    model_.vocab_size = tokenizer_.vocab_size();
    model_.context = 100;
    model_.defaults.generation.sampler = {0.8f, 40, 0.95f};
  }

  CompletionRequest completion(const json& body) {
    return parse_completion(body.dump(), model_, 77);
  }
  CompletionRequest chat(const json& body) {
    return parse_chat_completion(body.dump(), model_, 77);
  }

  // The error's param and message.
  std::string refused(const std::string& body, bool is_chat = false, int status = 400) {
    try {
      is_chat ? parse_chat_completion(body, model_, 1) : parse_completion(body, model_, 1);
    } catch (const ApiError& error) {
      EXPECT_EQ(error.status(), status) << error.what();
      EXPECT_EQ(json::parse(error.json())["error"]["message"], error.what());
      return error.param() + "|" + error.what();
    }
    return "accepted";
  }

  TinyChatModel folder_;
  Tokenizer tokenizer_;
  ChatFormat format_;
  TokenGrammars grammars_;
  ServedModel model_;
};

const json kHello = json::parse(R"([{"role": "user", "content": "hello"}])");

TEST_F(ApiRequest, TakesWhatTheRequestNamesAndTheRestFromTheServer) {
  const CompletionRequest plain = completion({{"prompt", "hello"}});
  ASSERT_EQ(plain.texts.size(), 1u);
  const TextRequest& text = plain.texts[0];
  EXPECT_EQ(text.prompt, tokenizer_.encode("hello", {.add_special = true}));
  EXPECT_EQ(text.seed, 77u);
  EXPECT_EQ(text.options.generation.max_tokens, 16u);
  EXPECT_EQ(text.options.generation.sampler.top_k, 40u);
  EXPECT_TRUE(text.options.rules.change_nothing());
  EXPECT_FALSE(plain.stream || plain.chat || text.n_top);

  const CompletionRequest full = completion({{"prompt", "hello"},
                                             {"model", "also"},
                                             {"max_tokens", 3},
                                             {"temperature", 0.5},
                                             {"top_p", 0.25},
                                             {"top_k", 7},
                                             {"repeat_penalty", 1.5},
                                             {"repeat_last_n", 9},
                                             {"min_p", 0.125},
                                             {"presence_penalty", -2},
                                             {"frequency_penalty", 0.5},
                                             {"logit_bias", {{"5", -100}, {"0", 1.5}}},
                                             {"seed", 18446744073709551615u},
                                             {"stop", {"a", "b"}},
                                             {"logprobs", 2},
                                             {"stream", true},
                                             {"stream_options", {{"include_usage", true}}}});
  const TextOptions& options = full.texts[0].options;
  EXPECT_EQ(options.generation.max_tokens, 3u);
  EXPECT_EQ(options.generation.sampler.temperature, 0.5f);
  EXPECT_EQ(options.generation.sampler.top_p, 0.25f);
  EXPECT_EQ(options.generation.sampler.top_k, 7u);
  EXPECT_EQ(options.generation.repeat_penalty, 1.5f);
  EXPECT_EQ(options.generation.repeat_last_n, 9u);
  EXPECT_EQ(options.rules.min_p, 0.125f);
  EXPECT_EQ(options.rules.presence_penalty, -2.0f);
  EXPECT_EQ(options.rules.frequency_penalty, 0.5f);
  auto bias = options.rules.bias;
  std::ranges::sort(bias);
  EXPECT_EQ(bias, (std::vector<std::pair<TokenId, float>>{{0, 1.5f}, {5, -100.0f}}));
  EXPECT_EQ(options.stops, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(full.texts[0].seed, UINT64_MAX);
  EXPECT_EQ(full.texts[0].n_top, 2u);
  EXPECT_TRUE(full.stream && full.include_usage);
}

TEST_F(ApiRequest, LimitsATextAsTheServersOptionSaysOrAsOpenAiDoes) {
  const auto limit = [](const CompletionRequest& request) {
    return request.texts[0].options.generation.max_tokens;
  };
  model_.defaults.generation.max_tokens = 5;
  EXPECT_EQ(limit(completion({{"prompt", "hello"}})), 16u);
  EXPECT_GT(limit(chat({{"messages", kHello}})), 1'000'000u);  // the context ends it
  model_.has_max_tokens = true;
  EXPECT_EQ(limit(completion({{"prompt", "hello"}})), 5u);
  EXPECT_EQ(limit(chat({{"messages", kHello}})), 5u);
}

TEST_F(ApiRequest, TakesWholeNumbersAsOtherServersDo) {
  const CompletionRequest request =
      completion({{"prompt", "he"}, {"max_tokens", 5.0}, {"top_k", 7.0}, {"seed", -2}, {"n", 3}});
  EXPECT_EQ(request.texts[0].options.generation.max_tokens, 5u);
  EXPECT_EQ(request.texts[0].options.generation.sampler.top_k, 7u);
  EXPECT_EQ(request.texts[0].seed, static_cast<std::uint64_t>(-2));
  EXPECT_EQ(request.texts[2].seed, 0u);
  EXPECT_EQ(completion({{"prompt", "he"}, {"seed", INT64_MIN}}).texts[0].seed,
            std::uint64_t{1} << 63);
  for (const char* key : {"max_tokens", "max_completion_tokens"}) {  // no limit
    const CompletionRequest free = chat({{"messages", kHello}, {key, -1}});
    EXPECT_GT(free.texts[0].options.generation.max_tokens, 1'000'000u);
  }
}

// Clients send earlier answers back as they were, with fields of other servers.
TEST_F(ApiRequest, TakesFieldsOfEarlierAnswers) {
  const json asked = {{"role", "user"}, {"content", "he"}, {"cache_control", {{"type", "x"}}}};
  const auto with = [&](const json& answer) {
    return chat({{"messages", json::array({asked, answer, asked})},
                 {"verbosity", "medium"},
                 {"prediction", {{"type", "content"}, {"content", "x"}}},
                 {"prompt_cache_retention", "24h"}})
        .texts[0]
        .prompt;
  };
  const std::vector<Message> same = {{"user", "he"}, {"assistant", "ll"}, {"user", "he"}};
  const std::vector<TokenId> expected = format_.tokens(same);
  EXPECT_EQ(with(json::parse(R"({"role": "assistant", "content": "ll", "annotations": [],
                                 "refusal": null, "audio": null, "function_call": null,
                                 "reasoning_content": "hm", "tool_calls": []})")),
            expected);
  EXPECT_EQ(with({{"role", "assistant"}, {"content", nullptr}, {"refusal", "ll"}}), expected);
  EXPECT_EQ(with({{"role", "assistant"},
                  {"content", json::array({{{"type", "refusal"}, {"refusal", "ll"}}})}}),
            expected);
  const auto param = [&](json message, const char* key, const json& value) {
    message[key] = value;
    const std::string answer =
        refused(json{{"messages", json::array({message, asked})}}.dump(), true);
    return answer.substr(0, answer.find('|'));
  };
  const json answer = {{"role", "assistant"}, {"content", "ll"}};
  EXPECT_EQ(param(answer, "refusal", "no"), "messages[0].refusal");
  EXPECT_EQ(param(answer, "audio", {{"id", "x"}}), "messages[0].audio");
  EXPECT_EQ(param(answer, "reasoning_content", 5), "messages[0].reasoning_content");
  EXPECT_EQ(param(asked, "annotations", json::array()), "messages[0].annotations");
  EXPECT_EQ(param(asked, "reasoning", "x"), "messages[0].reasoning");
  EXPECT_EQ(refused(json{{"messages", kHello}, {"verbosity", "low"}}.dump(), true).substr(0, 10),
            "verbosity|");
}

TEST_F(ApiRequest, GivesNamesAndReasoningToTheTemplate) {
  const auto file = folder_.folder() / "names.jinja";
  std::ofstream(file) << "{% for m in messages %}<|im_start|>{{ m.name or m.role }}\n"
                         "{% if m.reasoning_content is string %}({{ m.reasoning_content }})"
                         "{% endif %}{{ m.content }}<|im_end|>\n{% endfor %}";
  const ChatFormat format =
      ChatFormat::open(ModelSource(folder_.folder()), tokenizer_, {file.string()});
  model_.chat = &format;
  const json messages = json::parse(
      R"([{"role": "user", "content": "a", "name": "ann"},
          {"role": "assistant", "content": "b", "name": "bob", "reasoning_content": "hm"},
          {"role": "user", "content": "c"}, {"role": "assistant", "content": null, "reasoning": "so"},
          {"role": "user", "content": "d"}])");
  const std::vector<TokenId> prompt = chat({{"messages", messages}}).texts[0].prompt;
  EXPECT_EQ(tokenizer_.decode(prompt),
            "<|im_start|>ann\na<|im_end|>\n<|im_start|>bob\n(hm)b<|im_end|>\n<|im_start|>user\nc"
            "<|im_end|>\n<|im_start|>assistant\n(so)<|im_end|>\n<|im_start|>user\nd<|im_end|>\n");
  // They are text, whatever they spell.
  const json typed = {{{"role", "user"}, {"content", "a"}, {"name", "<|im_end|>"}}};
  const auto count = [&](const std::vector<TokenId>& tokens) {
    return std::ranges::count(tokens, *tokenizer_.id_of("<|im_end|>"));
  };
  EXPECT_EQ(count(prompt), 5);
  EXPECT_EQ(count(chat({{"messages", typed}}).texts[0].prompt), 1);
}

TEST_F(ApiRequest, MakesATextOfEachPromptAndChoiceWithASeedOfItsOwn) {
  const CompletionRequest request =
      completion({{"prompt", {"he", json::array({5, 6})}}, {"n", 2}, {"seed", 10}});
  ASSERT_EQ(request.texts.size(), 4u);
  EXPECT_EQ(request.texts[1].prompt, tokenizer_.encode("he", {.add_special = true}));
  EXPECT_EQ(request.texts[2].prompt, (std::vector<TokenId>{5, 6}));
  EXPECT_EQ(request.texts[1].seed, 11u);
  EXPECT_EQ(request.texts[2].seed, 10u);
  EXPECT_EQ(completion({{"prompt", {5, 6}}}).texts.size(), 1u);
}

TEST_F(ApiRequest, PutsAConversationIntoTheModelsFrame) {
  const json messages = json::parse(
      R"([{"role": "developer", "content": "brief"}, {"role": "user", "content": "he", "name": "x"},
          {"role": "assistant", "content": "ll", "refusal": null},
          {"role": "user", "content": [{"type": "text", "text": "o"}, {"type": "text", "text": "!"}]}])");
  const CompletionRequest request = chat({{"messages", messages}, {"max_completion_tokens", 4}});
  const std::vector<Message> same = {
      {"system", "brief"}, {"user", "he"}, {"assistant", "ll"}, {"user", "o!"}};
  EXPECT_EQ(request.texts[0].prompt, format_.tokens(same));
  EXPECT_EQ(request.texts[0].options.generation.max_tokens, 4u);
  EXPECT_EQ(request.texts[0].options.generation.end_tokens, format_.end_tokens());
  EXPECT_GE(chat({{"messages", kHello}}).texts[0].options.generation.max_tokens, 1'000'000u);
}

TEST_F(ApiRequest, TakesTheNamesAndValuesOfVllm) {
  const CompletionRequest request =
      completion({{"prompt", "hello"}, {"top_k", -1}, {"repetition_penalty", 1.25}});
  EXPECT_EQ(request.texts[0].options.generation.sampler.top_k, 0u);
  EXPECT_EQ(request.texts[0].options.generation.repeat_penalty, 1.25f);
}

TEST_F(ApiRequest, AcceptsFieldsThatChangeNothing) {
  const json harmless = json::parse(
      R"({"user": "u", "metadata": {"a": "b"}, "store": true, "presence_penalty": 0,
          "frequency_penalty": 0.0, "logit_bias": {}, "n": 1, "stop": null, "functions": null,
          "no_such_field": null, "service_tier": "auto"})");
  json body = harmless;
  body.update({{"prompt", "he"}, {"echo", false}, {"best_of", 1}, {"suffix", ""}});
  EXPECT_EQ(refused(body.dump()), "accepted");
  body = harmless;
  body.update({{"messages", kHello},
               {"tools", json::array()},
               {"tool_choice", "auto"},
               {"response_format", {{"type", "text"}}},
               {"logprobs", false},
               {"parallel_tool_calls", true}});
  EXPECT_EQ(refused(body.dump(), true), "accepted");
}

TEST_F(ApiRequest, RefusesByNameWhatWouldChangeTheAnswer) {
  const auto with = [](const std::string& more) { return R"({"prompt": "he", )" + more + "}"; };
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"("tempreature": 1)", "tempreature|request: 'tempreature': unknown field"},
      {R"("temperature": "hot")",
       "temperature|request: 'temperature': expected a number from 0 to 100, found \"hot\""},
      {R"("temperature": -1)",
       "temperature|request: 'temperature': expected a number from 0 to 100, found -1"},
      {R"("max_tokens": 0)",
       "max_tokens|request: 'max_tokens': expected a whole number from 1 to 10000000, found 0"},
      {R"("max_completion_tokens": 4)",
       "max_completion_tokens|request: 'max_completion_tokens': unknown field"},
      {R"("n": 17)", "n|request: 'n': expected a whole number from 1 to 16, found 17"},
      {R"("best_of": 3)", "best_of|request: 'best_of': not supported, found 3"},
      {R"("echo": true)", "echo|request: 'echo': not supported, found true"},
      {R"("presence_penalty": 2.5)",
       "presence_penalty|request: 'presence_penalty': expected a number from -2 to 2, found 2.5"},
      {R"("min_p": 2)", "min_p|request: 'min_p': expected a number from 0 to 1, found 2"},
      {R"("logit_bias": [[5, 1]])",
       "logit_bias|request: 'logit_bias': expected an object, found an array of 1"},
      {R"("logit_bias": {"5": 1, "05": 1})",
       "logit_bias|request: 'logit_bias': expected each token id once, found '05' again"},
      {R"("repetition_penalty": 1.1, "repeat_penalty": 1.3)",
       "repeat_penalty|request: 'repeat_penalty': expected only one of 'repetition_penalty' and "
       "'repeat_penalty', found both"},
      {R"("logit_bias": {"he": 1})",
       "logit_bias|request: 'logit_bias': expected token ids from 0 to 272, found 'he'"},
      {R"("logit_bias": {"515": 1})",
       "logit_bias|request: 'logit_bias': expected token ids from 0 to 272, found '515'"},
      {R"("logit_bias": {"5": 101})",
       "logit_bias.5|request: 'logit_bias.5': expected a number from -100 to 100, found 101"},
      {R"("seed": -1.5)",
       "seed|request: 'seed': expected a whole number from -9223372036854775808 to "
       "18446744073709551615, found -1.5"},
      {R"("seed": 18446744073709551616)",
       "seed|request: 'seed': expected a whole number from -9223372036854775808 to "
       "18446744073709551615, found 1.8446744073709552e+19"},
      {R"("max_tokens": -2)",
       "max_tokens|request: 'max_tokens': expected a whole number from 1 to 10000000, found -2"},
      {R"("max_tokens": 2.5)",
       "max_tokens|request: 'max_tokens': expected a whole number from 1 to 10000000, found 2.5"},
      {R"("top_k": 1e30)",
       "top_k|request: 'top_k': expected a whole number from 0 to 10000000, found 1e+30"},
      {R"("stop": [""])", "stop|request: 'stop': expected texts of 1 to 256 bytes, found 0"},
      {R"("stop": [1])", "stop|request: 'stop': expected a string, found 1"},
      {R"("logprobs": 21)",
       "logprobs|request: 'logprobs': expected a whole number from 0 to 20, found 21"},
      {R"("stream_options": {})",
       "stream_options|request: 'stream_options': expected 'stream' to be true, found false"},
      {R"("stream": true, "stream_options": {"x": 1})",
       "stream_options.x|request: 'stream_options.x': unknown field"},
      {R"("repeat_last_n": 100000)",
       "repeat_last_n|request: 'repeat_last_n': expected a whole number from 0 to 1024, found "
       "100000"},
      {R"("prompt": "he")", "|request: 'prompt' is given twice"},
  };
  for (const auto& [more, message] : cases) EXPECT_EQ(refused(with(more)), message);
  EXPECT_EQ(refused(with(R"("model": "gpt")"), false, 404),
            "model|request: 'model': expected 'tiny' or 'also', found 'gpt'");
  EXPECT_EQ(refused("{}"), "prompt|request: 'prompt': expected a string or an array, found none");
  EXPECT_EQ(refused("[]"), "|request: expected an object, found an array of 0");
  EXPECT_EQ(refused(""), "|request: expected JSON, found nothing");
  EXPECT_EQ(refused(std::string(1000, '[')), "|request: nested deeper than 64 levels");
  EXPECT_EQ(refused(R"({"prompt": [1, 5000]})"),
            fmt::format("prompt|request: 'prompt': expected token ids from 0 to {}, found 5000",
                        tokenizer_.vocab_size() - 1));
  EXPECT_EQ(refused(R"({"prompt": ["a", ["b"]]})"),
            fmt::format("prompt|request: 'prompt': expected token ids from 0 to {}, found \"b\"",
                        tokenizer_.vocab_size() - 1));
  EXPECT_EQ(refused(R"({"prompt": []})"),
            "prompt|request: 'prompt': expected 1 to 100 tokens (the context), found 0");
  EXPECT_EQ(refused(json{{"prompt", std::string(101, 'x')}}.dump()),
            "prompt|request: 'prompt': expected 1 to 100 tokens (the context), found 101");
  EXPECT_EQ(refused(R"({"prompt": ["a", "b", "c", "d", "e"], "n": 4})"),
            "n|request: 'n': expected at most 16 texts in all, found 20");
}

TEST_F(ApiRequest, RefusesAPromptThatTheModelCannotBegin) {
  model_.prompt_rule = PromptRule{.end = 5, .masks = {7, 6}};
  EXPECT_EQ(refused(R"({"prompt": [1, 7, 5]})"), "accepted");
  EXPECT_EQ(refused(R"({"prompt": [1, 6, 5, 2]})"), "accepted");
  EXPECT_EQ(
      refused(R"({"prompt": [1, 7]})"),
      "prompt|request: 'prompt': expected the whole prompt, up to token 5, at once (its tokens "
      "also attend to later ones), found none");
  EXPECT_EQ(
      refused(R"({"prompt": [1, 5]})"),
      "prompt|request: 'prompt': expected mask token 7 (the place of the answer) before token "
      "5, found none");
  try {
    parse_glass(R"({"tokens": [1, 5]})", model_, GlassView::Choices);
    ADD_FAILURE() << "not refused";
  } catch (const ApiError& error) {
    EXPECT_EQ(error.status(), 400);
    EXPECT_EQ(error.param(), "tokens");
  }
}

TEST_F(ApiRequest, RefusesConversationsThatTheFrameHasNoPlaceFor) {
  const auto with = [](const std::string& messages, const std::string& more = "") {
    return R"({"messages": )" + messages + more + "}";
  };
  const std::string hello = kHello.dump();
  EXPECT_EQ(refused(with("[]"), true),
            "messages|request: 'messages': expected an array of at least one message, found an "
            "array of 0");
  EXPECT_EQ(refused(with(R"([{"role": "assistant", "content": " "}])"), true),
            "messages|request: 'messages': the last message: expected the beginning of an answer, "
            "found nothing");
  EXPECT_EQ(refused(with(R"([{"role": "assistant", "tool_calls": [{"id": "a", "type": "function",
                              "function": {"name": "f", "arguments": "{}"}}]}])"),
                    true),
            "messages|request: 'messages': expected a result of each call, found none of 'a'");
  EXPECT_EQ(refused(with(R"([{"role": "user", "content": "x"}, {"role": "tool", "content": "x"}])"),
                    true),
            "messages[1].role|request: 'messages[1].role': expected a call before this result, "
            "found none");
  const std::string called = R"([{"role": "user", "content": "x"}, {"role": "assistant",
      "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": ""}}]},)";
  EXPECT_EQ(refused(with(called + R"({"role": "user", "content": "x"}])"), true),
            "messages[2].role|request: 'messages[2].role': expected the results of the calls "
            "before it, found \"user\"");
  EXPECT_EQ(
      refused(with(called + R"({"role": "tool", "tool_call_id": "b", "content": "x"}])"), true),
      "messages[2].tool_call_id|request: 'messages[2].tool_call_id': expected the id of a call "
      "before it that has no result yet, found \"b\"");
  const std::string two =
      R"([{"role": "user", "content": "x"}, {"role": "assistant", "tool_calls": [
      {"id": "a", "type": "function", "function": {"name": "f", "arguments": ""}},
      {"id": "b", "type": "function", "function": {"name": "f", "arguments": ""}}]},
      {"role": "tool", "tool_call_id": "a", "content": "x"})";
  EXPECT_EQ(refused(with(two + "]"), true),
            "messages|request: 'messages': expected a result of each call, found none of 'b'");
  EXPECT_EQ(
      refused(with(two + R"(, {"role": "tool", "tool_call_id": "a", "content": "x"}])"), true),
      "messages[3].tool_call_id|request: 'messages[3].tool_call_id': expected the id of a call "
      "before it that has no result yet, found \"a\"");
  EXPECT_EQ(refused(with(two + R"(, {"role": "user", "content": "x"}])"), true),
            "messages[3].role|request: 'messages[3].role': expected the results of the calls "
            "before it, found \"user\"");
  EXPECT_EQ(
      refused(with(called + R"({"role": "tool", "tool_call_id": "a", "content": "x"}])"), true),
      "messages|request: 'messages': tool calls are not supported by the chat template of "
      "this model");
  EXPECT_EQ(refused(with(R"([{"role": "system", "content": "x"}])"), true),
            "messages|request: 'messages': expected the role 'user', 'assistant' or 'tool' in the "
            "last message, found 'system'");
  EXPECT_EQ(
      refused(with(R"([{"role": "user", "content": [{"type": "image_url"}]}])"), true),
      "messages[0].content|request: 'messages[0].content': expected parts of the type 'text', "
      "found \"image_url\"");
  EXPECT_EQ(refused(with(R"([{"role": "user", "content": [{"type": "text", "text": "x"},
                              {"type": "text", "text": "x", "tone": 1}]}])"),
                    true),
            "messages[0].content[1].tone|request: 'messages[0].content[1].tone': unknown field");
  EXPECT_EQ(refused(with(R"([{"role": "user", "content": [{"type": "text", "text": "x",
                              "cache_control": {"type": "ephemeral"}}]}])"),
                    true),
            "accepted");
  EXPECT_EQ(refused(with(R"([{"role": "user"}])"), true),
            "messages[0].content|request: 'messages[0].content': expected a string or an array, "
            "found none");
  EXPECT_EQ(refused(with(R"([{"role": "user", "content": "x", "tone": 1}])"), true),
            "messages[0].tone|request: 'messages[0].tone': unknown field");
  EXPECT_EQ(refused(with(hello, R"(, "top_logprobs": 3)"), true),
            "top_logprobs|request: 'top_logprobs': expected 'logprobs' to be true, found false");
  EXPECT_EQ(refused(with(hello, R"(, "max_tokens": 3, "max_completion_tokens": 4)"), true),
            "max_tokens|request: 'max_tokens': expected the value of 'max_completion_tokens', 4, "
            "found 3");
  EXPECT_EQ(refused(with(hello, R"(, "max_tokens": 3, "max_completion_tokens": -1)"), true),
            "max_tokens|request: 'max_tokens': expected the value of 'max_completion_tokens', -1, "
            "found 3");
  model_.chat = nullptr;
  model_.why_no_chat = "models/x: expected a chat template";
  EXPECT_EQ(refused(with(hello), true), "|models/x: expected a chat template");
  EXPECT_EQ(refused(with(R"("x")"), true), "|models/x: expected a chat template");
}

TEST_F(ApiRequest, ContinuesALastMessageOfTheAssistant) {
  json messages = kHello;
  messages.push_back({{"role", "assistant"}, {"content", "he"}});
  std::vector<TokenId> expected = message_tokens(tokenizer_, {"user", "hello"});
  for (const TokenId token : message_tokens(tokenizer_, {"assistant", "he"})) {
    expected.push_back(token);
  }
  while (tokenizer_.decode(expected).ends_with("\n")) expected.pop_back();
  expected.pop_back();  // <|im_end|>
  json body = {{"messages", messages}};
  EXPECT_EQ(chat(body).texts[0].prompt, expected);
  body.update({{"continue_final_message", true}, {"add_generation_prompt", false}});
  EXPECT_EQ(chat(body).texts[0].prompt, expected);
  body["add_generation_prompt"] = true;
  EXPECT_EQ(refused(body.dump(), true),
            "add_generation_prompt|request: 'add_generation_prompt': not supported, found true");
  body = {{"messages", kHello}, {"continue_final_message", true}};
  EXPECT_EQ(refused(body.dump(), true),
            "continue_final_message|request: 'continue_final_message': not supported, found true");
  body = {{"messages", kHello}, {"continue_final_message", false}, {"add_generation_prompt", true}};
  EXPECT_EQ(refused(body.dump(), true), "accepted");
}

TEST_F(ApiRequest, GivesVariablesToTheTemplate) {
  const auto file = folder_.folder() / "thinking.jinja";
  std::ofstream(file)
      << "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>"
         "\n{% endfor %}<|im_start|>assistant\n"
         "{% if enable_thinking is false %}no{% endif %}"
         "{% if enable_thinking is none %}none{% endif %}{{ reasoning_effort }}";
  const ChatFormat format =
      ChatFormat::open(ModelSource(folder_.folder()), tokenizer_, {file.string()});
  model_.chat = &format;
  const auto end = [&](json body) {
    body["messages"] = kHello;
    const std::string text = tokenizer_.decode(chat(body).texts[0].prompt);
    return text.substr(text.rfind('\n') + 1);
  };
  EXPECT_EQ(end({}), "");
  EXPECT_EQ(end({{"chat_template_kwargs", {{"enable_thinking", true}}}}), "");
  EXPECT_EQ(end({{"chat_template_kwargs", {{"enable_thinking", false}}}}), "no");
  EXPECT_EQ(end({{"chat_template_kwargs", {{"enable_thinking", nullptr}}}}), "none");
  EXPECT_EQ(end({{"chat_template_kwargs", {{"of_another_template", nullptr}}}}), "");
  EXPECT_EQ(end({{"reasoning_effort", "low"}}), "low");
  EXPECT_EQ(end({{"chat_template_kwargs", {{"reasoning_effort", "low"}}}}), "low");
  const std::pair<const char*, const char*> cases[] = {
      {R"("chat_template_kwargs": [])",
       "chat_template_kwargs|request: 'chat_template_kwargs': expected an object, found an array "
       "of 0"},
      {R"("chat_template_kwargs": {"enable_thinkng": false})",
       "chat_template_kwargs.enable_thinkng|request: 'chat_template_kwargs.enable_thinkng': not "
       "supported: the chat template of this model has no such variable"},
      {R"("chat_template_kwargs": {"messages": []})",
       "chat_template_kwargs.messages|request: 'chat_template_kwargs.messages': not supported: the "
       "server sets this variable of the chat template"},
      {R"("reasoning_effort": 3)",
       "reasoning_effort|request: 'reasoning_effort': expected a string, found 3"},
      {R"("reasoning_effort": "low", "chat_template_kwargs": {"reasoning_effort": "high"})",
       "reasoning_effort|request: 'reasoning_effort': expected none together with "
       "'chat_template_kwargs.reasoning_effort', found \"low\""},
  };
  for (const auto& [more, message] : cases) {
    EXPECT_EQ(refused(R"({"messages": )" + kHello.dump() + ", " + more + "}", true), message);
  }
  model_.chat = &format_;
  EXPECT_EQ(
      refused(json{{"messages", kHello}, {"reasoning_effort", "low"}}.dump(), true),
      "reasoning_effort|request: 'reasoning_effort': not supported: the chat template of this "
      "model has no such variable");
}

// Programs send such conversations: a greeting first, a late instruction, a question in two parts.
TEST_F(ApiRequest, LeavesTheOrderOfRolesToTheTemplate) {
  const std::vector<Message> messages = {
      {"assistant", "hello"}, {"user", "he"}, {"system", "lo"}, {"user", "hello"}};
  json array = json::array();
  std::vector<TokenId> expected;
  for (const Message& message : messages) {
    array.push_back({{"role", message.role}, {"content", message.content}});
    for (const TokenId token : message_tokens(tokenizer_, message)) expected.push_back(token);
  }
  for (const TokenId token : answer_opening(tokenizer_)) expected.push_back(token);
  const ModelSource source(folder_.folder());
  const ChatFormat any_order = ChatFormat::open(source, tokenizer_, {"chatml"});
  model_.chat = &any_order;
  EXPECT_EQ(chat({{"messages", array}}).texts[0].prompt, expected);

  const auto file = folder_.folder() / "strict.jinja";
  std::ofstream(file) << "{% for m in messages %}{% if m.role != ('user' if loop.index0 % 2 == 0 "
                         "else 'assistant') %}{{ raise_exception('roles must alternate') }}"
                         "{% endif %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n"
                         "{% endfor %}<|im_start|>assistant\n";
  const ChatFormat strict = ChatFormat::open(source, tokenizer_, {file.string()});
  model_.chat = &strict;
  EXPECT_EQ(refused(json{{"messages", kHello}}.dump(), true), "accepted");
  EXPECT_EQ(refused(json{{"messages", array}}.dump(), true),
            "messages|request: 'messages': " + file.string() +
                ": line 1: the template refuses: roles must alternate");
}

TEST_F(ApiRequest, TakesAGrammarFromAnyFieldThatSaysOne) {
  const auto first_bytes = [](const TextRequest& text) {
    std::string bytes;
    for (int byte = 0; byte < 256; ++byte) {
      ByteAutomaton automaton(text.options.grammar->grammar);
      const auto next = automaton.next(automaton.start(), static_cast<std::uint8_t>(byte));
      if (next != ByteAutomaton::kDead) bytes += static_cast<char>(byte);
    }
    return bytes;
  };
  const json schema = {{"type", "array"}};
  EXPECT_EQ(first_bytes(completion({{"prompt", "x"}, {"grammar", "root ::= [ab]"}}).texts[0]),
            "ab");
  EXPECT_EQ(first_bytes(completion({{"prompt", "x"}, {"json_schema", schema}}).texts[0]), "[");
  const auto format = [&](const json& value) {
    return first_bytes(chat({{"messages", kHello}, {"response_format", value}}).texts[0]);
  };
  EXPECT_EQ(format({{"type", "json_object"}}), "{");
  EXPECT_EQ(format({{"type", "json_object"}, {"schema", schema}}), "[");
  EXPECT_EQ(format({{"type", "json_schema"},
                    {"json_schema", {{"name", "x"}, {"strict", true}, {"schema", schema}}}}),
            "[");
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"("grammar": "root = x")",
       "grammar|request: 'grammar': line 1, column 6: expected '::=', found '='"},
      {R"("grammar": "root ::= [a]", "json_schema": {})",
       "json_schema|request: 'json_schema': expected only one of 'grammar' and 'json_schema', "
       "found both"},
      {R"("response_format": {"type": "yaml"})",
       "response_format.type|request: 'response_format.type': expected 'text', 'json_object' or "
       "'json_schema', found \"yaml\""},
      {R"("response_format": {"type": "json_schema", "json_schema": {"schema": {"not": {}}}})",
       "response_format|request: response_format.json_schema.schema.not: not supported in a "
       "schema"},
      {R"("response_format": {"type": "json_object", "strict": true})",
       "response_format.strict|request: 'response_format.strict': unknown field"},
      {R"("tools": [{"type": "function", "function": {"name": "f"}}])",
       "tools|request: 'tools': not supported: the chat template of this model has no known "
       "format of tool calls"},
      {R"("tools": [{"type": "web_search"}])",
       "tools[0]|request: 'tools[0]': expected an object of the type 'function', found "
       "\"web_search\""},
      {R"("tools": [{"type": "function"}])",
       "tools[0].function|request: 'tools[0].function': expected an object, found none"},
      {R"("tools": [{"type": "function", "function": {"name": "f"}, "nmae": 1}])",
       "tools[0].nmae|request: 'tools[0].nmae': unknown field"},
      {R"("tools": [{"type": "function", "cache_control": {"type": "ephemeral"},
                     "function": {"name": "f", "strict": true}}])",
       "tools|request: 'tools': not supported: the chat template of this model has no known "
       "format of tool calls"},
      {R"("tools": [{"type": "function", "function": {"name": "f g"}}])",
       "tools[0].function.name|request: 'tools[0].function.name': expected 1 to 64 letters, "
       "digits, "
       "_ or -, found \"f g\""},
      {R"("tools": [{"type": "function", "function": {"name": "f"}},
                    {"type": "function", "function": {"name": "g"}},
                    {"type": "function", "function": {"name": "f"}}])",
       "tools[2].function.name|request: 'tools[2].function.name': expected a name that no tool "
       "before it has, found \"f\""},
      {R"("tool_choice": "required")",
       "tool_choice|request: 'tool_choice': expected 'none' or 'auto' without 'tools', found "
       "\"required\""},
  };
  for (const auto& [more, message] : cases) {
    EXPECT_EQ(refused(R"({"messages": )" + kHello.dump() + ", " + more + "}", true), message);
  }
}

// A chat template that writes calls between <tool_call> tags.
class ToolRequest : public ApiRequest {
 protected:
  ToolRequest()
      : calling_(ChatFormat::open(ModelSource(folder_.folder()), tokenizer_,
                                  {REPOSITORY "/reference/chat_templates/qwen-2.5.jinja"})) {
    calling_.find_tool_form();
    model_.chat = &calling_;
    model_.context = 5000;
  }

  static json tool(const std::string& name, const json& parameters, json strict = nullptr) {
    return {{"type", "function"},
            {"function", {{"name", name}, {"parameters", parameters}, {"strict", strict}}}};
  }
  static json body(const json& tools) {
    return {{"messages", kHello}, {"tools", tools}, {"tool_choice", "required"}};
  }
  bool allows(const json& body, const std::string& text) {
    return matches(*chat(body).texts[0].options.grammar->grammar, text);
  }
  static std::string call(const std::string& name, const std::string& arguments) {
    return "<tool_call>{\"name\": \"" + name + "\", \"arguments\": " + arguments + "}</tool_call>";
  }

  ChatFormat calling_;
};

// As OpenAI: only "strict": true asks for all of the schema.
TEST_F(ToolRequest, EnforcesOfParametersWhatAGrammarExpressesUnlessTheyAreStrict) {
  const json schema = json::parse(
      R"({"type": "object", "required": ["a"], "properties": {
          "a": {"type": "array", "items": {"type": "integer"}, "uniqueItems": true}}})");
  for (const json& strict : {json(nullptr), json(false)}) {
    const json loose = body(json::array({tool("f", schema, strict)}));
    EXPECT_TRUE(allows(loose, call("f", R"({"a": [1, 1]})")));
    EXPECT_FALSE(allows(loose, call("f", R"({"a": [true]})")));
    EXPECT_FALSE(allows(loose, call("f", "{}")));
  }
  EXPECT_EQ(
      refused(body(json::array({tool("f", schema, true)})).dump(), true),
      "tools|request: tools[0].function.parameters.properties.a.uniqueItems: not supported in "
      "a schema");
  EXPECT_EQ(
      refused(body(json::array({tool("f", {{"type", "array"}})})).dump(), true),
      "tools|request: tools[0].function.parameters.type: expected \"object\", found \"array\"");
  json format = {{"messages", kHello},
                 {"response_format",
                  {{"type", "json_schema"}, {"json_schema", {{"name", "x"}, {"schema", schema}}}}}};
  EXPECT_EQ(refused(format.dump(), true),
            "response_format|request: response_format.json_schema.schema.properties.a.uniqueItems: "
            "not supported in a schema");
  format["response_format"]["json_schema"]["strict"] = false;
  EXPECT_TRUE(allows(format, R"({"a": [1, 1]})"));
  EXPECT_FALSE(allows(format, R"({"a": [true]})"));
  format["tools"] = json::array({tool("f", schema)});
  EXPECT_TRUE(allows(format, R"({"a": [1, 1]})"));
}

// The client does not see the grammar, so an error must not name a line of it.
TEST_F(ToolRequest, NamesTheSchemaThatIsTooLargeForAGrammar) {
  json large = {{"type", "object"}, {"properties", {{"e", {{"enum", json::array()}}}}}};
  for (int i = 0; i < 20'000; ++i) {
    large["properties"]["e"]["enum"].push_back(fmt::format("value {:05}", i));
  }
  const json small = json::parse(R"({"type": "object", "properties": {"a": {"type": "integer"}}})");
  const std::string why =
      ": expected a schema whose grammar has at most 200000 symbols and 100 nested groups, found "
      "more";
  EXPECT_EQ(refused(json{{"prompt", "x"}, {"json_schema", large}}.dump()),
            "json_schema|request: json_schema" + why);
  model_.context = 1'000'000;
  EXPECT_EQ(refused(body({tool("f", small), tool("g", large, true)}).dump(), true),
            "tools|request: tools[1].function.parameters" + why);
  const json loose = body({tool("f", small), tool("g", large)});
  EXPECT_TRUE(allows(loose, call("g", R"({"z": 1})")));
  EXPECT_FALSE(allows(loose, call("f", R"({"z": 1})")));
}

TEST_F(ToolRequest, NamesTheToolsThatDoNotFitBesideTheSchemaOfTheAnswer) {
  json function = {{"name", "f"}, {"strict", true}};  // without parameters
  const auto request = [&](std::size_t n, bool with_tool) {
    json schema = {{"enum", json::array()}};
    for (std::size_t i = 0; i < n; ++i) schema["enum"].push_back(fmt::format("value {:05}", i));
    json made = {{"messages", kHello},
                 {"response_format",
                  {{"type", "json_schema"}, {"json_schema", {{"name", "x"}, {"schema", schema}}}}}};
    if (with_tool) {
      made["tools"] = json::array({json{{"type", "function"}, {"function", function}}});
    }
    return made.dump();
  };
  std::size_t fits = 1, too_many = 20'000;
  while (too_many - fits > 1) {
    const std::size_t middle = (fits + too_many) / 2;
    (refused(request(middle, false), true) == "accepted" ? fits : too_many) = middle;
  }
  EXPECT_EQ(refused(request(fits, true), true),
            "tools|request: 'tools': expected a schema whose grammar has at most 200000 symbols "
            "and 100 nested groups, found more");
}

// Some models write no arguments as nothing, and clients send it back.
TEST_F(ToolRequest, TakesCallsWithoutArguments) {
  const auto prompt = [&](const char* arguments) {
    json messages = kHello;
    messages.push_back(
        {{"role", "assistant"},
         {"tool_calls", json::array({{{"id", "a"},
                                      {"type", "function"},
                                      {"function", {{"name", "f"}, {"arguments", arguments}}}}})}});
    messages.push_back({{"role", "tool"}, {"tool_call_id", "a"}, {"content", "x"}});
    return chat({{"messages", messages}}).texts[0].prompt;
  };
  EXPECT_EQ(prompt(""), prompt("{}"));
}

TEST_F(ToolRequest, AllowsOneCallOfAFunctionThatIsNamed) {
  json choice = body({tool("f", json::object()), tool("g", json::object())});
  const std::string one = call("f", "{}");
  EXPECT_TRUE(allows(choice, one) && allows(choice, one + call("g", "{}")));
  choice["parallel_tool_calls"] = false;
  EXPECT_TRUE(allows(choice, one));
  EXPECT_FALSE(allows(choice, one + one));
  choice["parallel_tool_calls"] = true;
  choice["tool_choice"] = {{"type", "function"}, {"function", {{"name", "f"}}}};
  EXPECT_TRUE(allows(choice, one));
  EXPECT_FALSE(allows(choice, one + one) || allows(choice, call("g", "{}")));
}

TEST_F(ApiRequest, TellsOfEachTokenWhereItsIdIsAskedFor) {
  const CompletionRequest plain = completion({{"prompt", "hello"}});
  EXPECT_FALSE(plain.token_ids || plain.logprobs || plain.texts[0].n_top);
  for (const CompletionRequest& asked :
       {completion({{"prompt", "hello"}, {"return_token_ids", true}}),
        chat({{"messages", kHello}, {"return_token_ids", true}})}) {
    EXPECT_TRUE(asked.token_ids && !asked.logprobs);
    EXPECT_EQ(asked.texts[0].n_top, 0u);
  }
}

TEST_F(ApiRequest, EndsATextAtTokensThatTheRequestNames) {
  const auto ends = completion({{"prompt", "hello"}, {"stop_token_ids", {3, 4}}})
                        .texts[0]
                        .options.generation.end_tokens;
  EXPECT_EQ(ends, (std::vector<TokenId>{3, 4}));
  model_.defaults.generation.end_tokens = {9};
  EXPECT_EQ(completion({{"prompt", "hello"}, {"stop_token_ids", {3}}})
                .texts[0]
                .options.generation.end_tokens,
            (std::vector<TokenId>{9, 3}));
  const std::size_t n = tokenizer_.vocab_size();
  EXPECT_EQ(refused(fmt::format(R"({{"prompt": "x", "stop_token_ids": [{}]}})", n - 1)),
            "accepted");
  EXPECT_EQ(refused(fmt::format(R"({{"prompt": "x", "stop_token_ids": [{}]}})", n)).substr(0, 15),
            "stop_token_ids|");
  EXPECT_NE(refused(R"({"prompt": "x", "stop_token_ids": 3})"), "accepted");
}

TEST_F(ApiRequest, MakesTokensOfATextAsAPromptHasThem) {
  const Tokenizer llama = Tokenizer::open(TEST_DATA "/tokenizers/llama3");
  model_.tokenizer = &llama;
  const std::string text = "<|begin_of_text|>a";
  const auto tokens = [&](json body) {
    body["content"] = text;
    return parse_tokenize(body.dump(), model_);
  };
  EXPECT_EQ(tokens(json::object()), llama.encode(text, {}));
  EXPECT_EQ(tokens({{"add_special", true}}), llama.encode(text, {.add_special = true}));
  EXPECT_EQ(tokens({{"parse_special", false}}), llama.encode(text, {.parse_special = false}));
  EXPECT_NE(llama.encode(text, {}), llama.encode(text, {.add_special = true}));
  EXPECT_NE(llama.encode(text, {}), llama.encode(text, {.parse_special = false}));
}

TEST_F(ApiRequest, TakesALookAtATextOfTokens) {
  const GlassRequest look = parse_glass(
      R"({"tokens": [1, 2], "next": 3, "top": 4, "temperature": 0.5, "top_k": 9, "top_p": 0.7})",
      model_, GlassView::Layers);
  EXPECT_EQ(look.view, GlassView::Layers);
  EXPECT_EQ(look.tokens, (std::vector<TokenId>{1, 2}));
  EXPECT_EQ(look.next, 3);
  EXPECT_EQ(look.top, 4u);
  EXPECT_EQ(look.sampler.temperature, 0.5f);
  EXPECT_EQ(look.sampler.top_k, 9u);
  const auto param = [&](const std::string& body) {
    try {
      parse_glass(body, model_, GlassView::Choices);
    } catch (const ApiError& error) {
      EXPECT_EQ(error.status(), 400);
      return error.param();
    }
    return std::string("accepted");
  };
  EXPECT_EQ(param(R"({"tokens": [1]})"), "accepted");
  EXPECT_EQ(param(R"({})"), "tokens");
  EXPECT_EQ(param(R"({"tokens": "x"})"), "tokens");
  EXPECT_EQ(param(R"({"tokens": []})"), "tokens");
  EXPECT_EQ(param(R"({"tokens": [-1]})"), "tokens");
  EXPECT_EQ(param(R"({"tokens": [1, 100000]})"), "tokens");
  EXPECT_EQ(param(json({{"tokens", std::vector<int>(101, 1)}}).dump()), "tokens");  // > context
  EXPECT_EQ(param(R"({"tokens": [1], "next": 100000})"), "next");
  EXPECT_EQ(param(R"({"tokens": [1], "top": 101})"), "top");
  EXPECT_EQ(param(R"({"tokens": [1], "layer": 0})"), "layer");
}

TEST_F(ApiRequest, ReadsOrRefusesMutatedBodies) {
  json messages = kHello;
  messages.push_back({{"role", "assistant"}, {"content", "he \n"}});
  const json body_of = {
      {"messages", messages},
      {"stop", {"a"}},
      {"temperature", 1},
      {"stream", false},
      {"chat_template_kwargs", {{"message", {1.5}}}},
      {"json_schema", {{"type", "number"}, {"minimum", -1.25}, {"exclusiveMaximum", 1e3}}}};
  const std::string whole = body_of.dump();
  std::mt19937 random(3);
  int accepted = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string body = whole;
    for (std::size_t changes = 1 + random() % 3; changes > 0; --changes) {
      const std::size_t at = random() % body.size();
      switch (random() % 3) {
        case 0:
          body[at] = static_cast<char>(random());
          break;
        case 1:
          body.erase(at, 1 + random() % 5);
          break;
        default:
          body.insert(at, body.substr(random() % body.size(), random() % 20));
          break;
      }
      if (body.empty()) body = "{";
    }
    try {
      parse_chat_completion(body, model_, 1);
      ++accepted;
    } catch (const ApiError& error) {
      EXPECT_TRUE(json::accept(error.json()));
    }
  }
  EXPECT_GT(accepted, 10);
}

}  // namespace
}  // namespace stagecraft
