#pragma once

#include <ctime>
#include <string>
#include <vector>

#include "serve/answer.h"
#include "text/tool_calls.h"

namespace stagecraft {

// A completion, of a chat or of a prompt, as OpenAI defines it.
class AnswerWriter : public Answer {
 public:
  struct Options {
    bool chat = false;
    bool stream = false;
    bool include_usage = false;
    bool logprobs = false;
    // Where set, the answer names the tokens of each text, and these of each prompt. The fields are
    // those of vLLM: prompt_token_ids and token_ids.
    std::optional<std::vector<std::vector<TokenId>>> prompts;
    std::size_t n_texts = 1;
    std::size_t n = 1;  // texts per prompt
    ToolForm tool_form = ToolForm::None;
    std::string id;  // "chatcmpl-1f"
    std::string model;
    std::time_t created = 0;
  };
  // tokenizer: must outlive it.
  AnswerWriter(const Tokenizer& tokenizer, const Options& options);

  bool is_stream() const override { return options_.stream; }
  std::string begin() override;
  std::string add(std::size_t index, const TextEvent& event) override;
  bool is_complete() const override { return ended_ == choices_.size(); }
  std::string finish() override;
  const std::string& error() const override { return error_; }

 private:
  struct Choice {
    std::string text;
    ToolCallReader reader{ToolForm::None};
    std::vector<ToolCall> calls;
    bool begun = false;          // in a stream: something was said
    std::size_t characters = 0;  // of the text so far
    std::vector<TokenScore> scores;
    std::vector<std::size_t> offsets;  // where in the text each of these tokens begins
    TextEnd end;
  };
  void take(std::size_t index, ToolCallReader::Found found, const TextEvent& event,
            std::string& said);

  struct Json;  // keeps the library out of this header

  const Tokenizer& tokenizer_;
  Options options_;
  std::vector<Choice> choices_;
  std::size_t ended_ = 0;
  std::string error_;
};

}  // namespace stagecraft
