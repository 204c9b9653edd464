#include "serve/response_writer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace stagecraft {
namespace {

class ResponseWriterTest : public testing::Test {
 protected:
  ResponseWriterTest() {
    options_.id = "1";
    options_.echo = "{}";
    options_.tool_form = ToolForm::Tagged;
  }
  // The answer of one text, which comes in these pieces.
  nlohmann::json answer(const std::vector<std::string>& pieces, const TextEnd& end) const {
    ResponseWriter writer(options_);
    for (const std::string& piece : pieces) writer.add(0, {0, piece, {}, {}});
    writer.add(0, {0, "", {}, end});
    EXPECT_TRUE(writer.is_complete());
    return nlohmann::json::parse(writer.finish());
  }
  static TextEnd end_of(StopReason reason) {
    TextEnd end;
    end.reason = reason;
    return end;
  }

  ResponseWriter::Options options_;
};

TEST_F(ResponseWriterTest, CallsATextThatWasCutIncomplete) {
  for (const auto& [reason, status] : {std::pair{StopReason::EndToken, "completed"},
                                       {StopReason::Stopped, "completed"},
                                       {StopReason::MaxTokens, "incomplete"},
                                       {StopReason::ContextFull, "incomplete"}}) {
    const nlohmann::json found = answer({"Hi"}, end_of(reason));
    EXPECT_EQ(found["status"], status);
    EXPECT_EQ(found["output"][0]["status"], status);
    EXPECT_EQ(found["incomplete_details"].is_null(), found["status"] == "completed");
    EXPECT_EQ(found["error"], nullptr);
  }
}

TEST_F(ResponseWriterTest, OnlyTheItemThatWasCutIsIncomplete) {
  const std::string call = R"(<tool_call>{"name": "f", "arguments": {}}</tool_call>)";
  const nlohmann::json items = answer({"one", call, "tw"}, end_of(StopReason::MaxTokens))["output"];
  ASSERT_EQ(items.size(), 3u);
  EXPECT_EQ(items[0]["status"], "completed");
  EXPECT_EQ(items[1]["status"], "completed");
  EXPECT_EQ(items[2]["status"], "incomplete");
}

TEST_F(ResponseWriterTest, AStreamSaysThatTheItemWasCut) {
  options_.stream = true;
  ResponseWriter writer(options_);
  const std::string events = writer.add(0, {0, "Hi", {}, end_of(StopReason::MaxTokens)});
  const std::string done = events.substr(events.find("event: response.output_item.done"));
  EXPECT_NE(done.find(R"("status":"incomplete")"), std::string::npos) << done;
}

TEST_F(ResponseWriterTest, WritesEachTextBetweenCallsAsAnItemOfItsOwn) {
  const std::string call = R"(<tool_call>{"name": "f", "arguments": {}}</tool_call>)";
  const nlohmann::json items =
      answer({"one", call, "two", call}, end_of(StopReason::EndToken))["output"];
  ASSERT_EQ(items.size(), 4u);
  EXPECT_EQ(items[0]["content"][0]["text"], "one");
  EXPECT_EQ(items[1]["type"], "function_call");
  EXPECT_EQ(items[2]["content"][0]["text"], "two");
  EXPECT_EQ(items[3]["call_id"], "call_1_3");
}

TEST_F(ResponseWriterTest, SaysWhoseFaultAnErrorIs) {
  options_.grammar_field = "text.format";
  TextEnd end = end_of(StopReason::Stopped);
  end.error = "too ambiguous";
  EXPECT_EQ(answer({}, end)["error"],
            (nlohmann::json{{"code", "server_error"}, {"message", "too ambiguous"}}));
  end.grammar_failed = true;
  EXPECT_EQ(answer({}, end)["error"],
            (nlohmann::json{{"code", "invalid_prompt"},
                            {"message", "request: 'text.format': too ambiguous"}}));
  EXPECT_EQ(answer({}, end)["status"], "failed");
}

}  // namespace
}  // namespace stagecraft
