#pragma once

#include <string>
#include <vector>

#include "serve/answer.h"
#include "text/tool_calls.h"

namespace stagecraft {

// Writes a completion (/v1/completions, /v1/chat/completions) as OpenAI defines it.
class CompletionWriter : public Answer {
 public:
  struct Options : AnswerHead {
    // The token ids of each prompt. If they are set, the answer contains them and the token ids of
    // each text, in the fields of vLLM: prompt_token_ids and token_ids.
    std::optional<std::vector<std::vector<TokenId>>> prompts = {};
    std::size_t n_texts = 1;
  };
  // The tokenizer must outlive the writer.
  CompletionWriter(const Tokenizer& tokenizer, const Options& options);

  bool is_stream() const override { return options_.stream; }
  std::string begin() override;
  std::string add(std::size_t index, const TextEvent& event) override;
  bool is_complete() const override { return ended_ == choices_.size(); }
  std::string finish() override;
  std::optional<ApiError> error() const override { return error_; }

 private:
  struct Choice {
    std::string text;
    ToolCallReader reader{ToolForm::None};
    std::vector<ToolCall> calls;
    bool begun = false;  // for a stream: a chunk of this text was sent
    std::vector<TokenScore> scores;
    std::vector<std::size_t> offsets;  // where each token of `scores` begins, in characters
    TextEnd end;
  };
  void take(std::size_t index, ToolCallReader::Found found, const TextEvent& event,
            std::string& said);

  struct Builder;  // keeps the JSON library out of this header

  const Tokenizer& tokenizer_;
  Options options_;
  std::vector<Choice> choices_;
  std::size_t ended_ = 0;
  std::optional<ApiError> error_;
};

}  // namespace stagecraft
