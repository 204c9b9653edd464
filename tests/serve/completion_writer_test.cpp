#include "serve/completion_writer.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "tests/support/tiny_chat_model.h"

namespace stagecraft {
namespace {

using nlohmann::json;

class CompletionWriterTest : public testing::Test {
 protected:
  CompletionWriterTest() {
    options_.id = "cmpl-1";
    options_.model = "tiny";
  }

  static TextEvent piece(std::string text) {
    TextEvent event;
    event.piece = std::move(text);
    return event;
  }
  static TextEvent end(StopReason reason) {
    TextEvent event;
    TextEnd& end = event.end.emplace();
    end.reason = reason;
    end.prompt_tokens = 10;
    end.cached_tokens = 4;
    end.new_tokens = 3;
    return event;
  }
  // The answer to one text.
  json answer(const std::vector<TextEvent>& events) const {
    CompletionWriter writer(tokenizer_, options_);
    for (const TextEvent& event : events) writer.add(0, event);
    EXPECT_TRUE(writer.is_complete());
    return json::parse(writer.finish());
  }

  TinyChatModel folder_;
  Tokenizer tokenizer_ = Tokenizer::open(folder_.folder());
  CompletionWriter::Options options_;
};

TEST_F(CompletionWriterTest, KeepsEachTokenThatIsAPartOfACharacter) {
  const auto token_of = [&](std::string_view bytes) {
    TokenId token = 0;
    while (tokenizer_.bytes_of(token) != bytes) ++token;
    return token;
  };
  options_.logprobs = true;
  TextEvent event = end(StopReason::EndToken);
  event.score = TokenScore{token_of("\xf0"),
                           -0.5f,
                           {{token_of("\xf0"), -0.5f},
                            {token_of("\xe2"), -1.0f},
                            {token_of("A"), -2.0f},
                            {token_of("\x9f"), -3.0f}}};
  const json logprobs = answer({event})["choices"][0]["logprobs"];
  EXPECT_EQ(logprobs["tokens"], json({R"(bytes:\xf0)"}));
  EXPECT_EQ(logprobs["top_logprobs"][0], json({{R"(bytes:\xf0)", -0.5},
                                               {R"(bytes:\xe2)", -1.0},
                                               {"A", -2.0},
                                               {R"(bytes:\x9f)", -3.0}}));
}

TEST_F(CompletionWriterTest, CountsAPromptOnceHoweverManyTextsItHas) {
  options_.n_texts = 4;
  options_.n = 2;
  CompletionWriter writer(tokenizer_, options_);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_FALSE(writer.is_complete());
    writer.add(i, end(StopReason::EndToken));
  }
  const json usage = json::parse(writer.finish())["usage"];
  EXPECT_EQ(usage["prompt_tokens"], 20);  // of two prompts
  EXPECT_EQ(usage["prompt_tokens_details"]["cached_tokens"], 8);
  EXPECT_EQ(usage["completion_tokens"], 12);
  EXPECT_EQ(usage["total_tokens"], 32);
}

TEST_F(CompletionWriterTest, SaysWhyATextEnded) {
  options_.chat = true;
  options_.tool_form = ToolForm::Tagged;
  const std::string call = R"(<tool_call>{"name": "f", "arguments": {}}</tool_call>)";
  const auto reason = [&](const std::string& text, StopReason why) {
    return answer({piece(text), end(why)})["choices"][0]["finish_reason"];
  };
  for (const StopReason whole : {StopReason::EndToken, StopReason::Stopped}) {
    EXPECT_EQ(reason("Hi", whole), "stop");
    EXPECT_EQ(reason(call, whole), "tool_calls");
  }
  for (const StopReason cut : {StopReason::MaxTokens, StopReason::ContextFull}) {
    EXPECT_EQ(reason("Hi", cut), "length");
    EXPECT_EQ(reason(call, cut), "length");  // a further call may be missing
  }
}

TEST_F(CompletionWriterTest, HasNoContentWhereThereAreOnlyCalls) {
  options_.chat = true;
  options_.tool_form = ToolForm::Tagged;
  const std::string call = R"(<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>)";
  const auto message = [&](const std::string& text) {
    return answer({piece(text), end(StopReason::EndToken)})["choices"][0]["message"];
  };
  EXPECT_EQ(message(call)["content"], nullptr);
  EXPECT_EQ(message(call + call)["tool_calls"][1]["id"], "call_1_0_1");
  EXPECT_EQ(message(call)["tool_calls"][0]["function"]["arguments"], R"({"a":1})");
  EXPECT_EQ(message("So: " + call)["content"], "So: ");
  EXPECT_EQ(message("")["content"], "");
  EXPECT_FALSE(message("Hi").contains("tool_calls"));
}

TEST_F(CompletionWriterTest, SaysWhereEachTokenBegins) {
  options_.logprobs = true;
  TextEvent first = piece("é"), second = piece("字a"), third = piece("!");
  first.score = {tokenizer_.id_of("a").value(), -0.5f, {}};
  second.score = third.score = first.score;
  second.offset = 1;
  third.offset = 3;
  const json logprobs =
      answer({first, second, third, end(StopReason::EndToken)})["choices"][0]["logprobs"];
  EXPECT_EQ(logprobs["text_offset"], (json{0, 1, 3}));
  EXPECT_EQ(logprobs["token_logprobs"], (json{-0.5, -0.5, -0.5}));
}

// JSON has no infinity.
TEST_F(CompletionWriterTest, WritesALeastNumberForATokenThatIsNotPossible) {
  options_.logprobs = true;
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  TextEvent one = piece("a");
  const TokenId a = tokenizer_.id_of("a").value();
  one.score = {a, 0.0f, {{a, 0.0f}, {a + 1, kNever}}};
  const json choice = answer({one, end(StopReason::EndToken)})["choices"][0];
  EXPECT_EQ(choice["logprobs"]["top_logprobs"][0]["b"], -9999.0);
}

TEST_F(CompletionWriterTest, GivesTheErrorOfTheFirstTextThatFailed) {
  options_.n_texts = 2;
  options_.grammar_field = "grammar";
  CompletionWriter writer(tokenizer_, options_);
  TextEvent failed = end(StopReason::Stopped);
  failed.end->error = "no memory";
  writer.add(1, failed);
  failed.end->error = "too ambiguous";
  failed.end->grammar_failed = true;
  writer.add(0, failed);
  ASSERT_TRUE(writer.is_complete() && writer.error());
  EXPECT_EQ(writer.error()->status(), 500);
  EXPECT_STREQ(writer.error()->what(), "no memory");
}

}  // namespace
}  // namespace stagecraft
