#pragma once

#include <optional>
#include <string>
#include <vector>

#include "serve/answer.h"
#include "text/tool_calls.h"

namespace stagecraft {

// Writes the answer to POST /v1/responses (response_request.h).
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
  void close_text(Builder& builder, std::string_view status);

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
