#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "serve/answer.h"
#include "serve/api_request.h"
#include "text/tool_calls.h"

namespace stagecraft {

// POST /v1/responses is OpenAI's newer format for chats. The request is rewritten as a chat
// completion, and the answer is written in the newer format. The server stores nothing between
// requests.

// parse_response throws ApiError, which names a field as this request names it.
struct ResponseRequest {
  CompletionRequest completion;
  std::string echo;  // a JSON object: the fields of the request that the answer repeats
};
ResponseRequest parse_response(std::string_view body, const ServedModel& model,
                               std::uint64_t random_seed);

class ResponseWriter : public Answer {
 public:
  struct Options : AnswerHead {
    std::string echo = {};  // see ResponseRequest
  };
  explicit ResponseWriter(const Options& options);

  bool is_stream() const override { return options_.stream; }
  std::string begin() override;
  std::string add(std::size_t index, const TextEvent& event) override;
  bool is_complete() const override { return ended_; }
  std::string finish() override;
  std::optional<ApiError> error() const override;

 private:
  struct Builder;  // keeps the JSON library out of this header

  void take(const ToolCallReader::Found& found, Builder& builder);
  void close_text(Builder& builder);

  Options options_;
  ToolCallReader reader_;
  std::vector<std::string> items_;  // complete items, as JSON
  std::string text_;                // text of the message that is being written
  bool in_text_ = false;
  bool ended_ = false;
  TextEnd end_;
  std::size_t sequence_ = 0;
};

}  // namespace stagecraft
