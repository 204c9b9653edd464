#pragma once

#include <ctime>
#include <string>
#include <vector>

#include "serve/scheduler.h"
#include "text/tool_calls.h"

namespace stagecraft {

// The answer to one request for text, written from the events of its texts as OpenAI defines it:
// one JSON object at the end, or a stream of server-sent events. Knows no connection.
class AnswerWriter {
 public:
  struct Options {
    bool chat = false;
    bool stream = false;
    bool include_usage = false;
    bool logprobs = false;
    std::size_t n_texts = 1;
    std::size_t n = 1;  // texts per prompt
    ToolForm tool_form = ToolForm::None;
    std::string id;  // "chatcmpl-1f"
    std::string model;
    std::time_t created = 0;
  };
  // tokenizer: must outlive it.
  AnswerWriter(const Tokenizer& tokenizer, const Options& options);

  bool is_stream() const { return options_.stream; }

  // What a stream begins with; "" where there is nothing to say yet.
  std::string begin() const;
  // An event of choice `index`. Returns what a stream says now; "" in an answer in one piece.
  std::string add(std::size_t index, const TextEvent& event);
  // Has every text ended?
  bool is_complete() const { return ended_ == choices_.size(); }
  // The whole answer, or the end of the stream.
  std::string finish() const;

  // What went wrong with the first text that failed; empty if none did.
  const std::string& error() const { return error_; }

 private:
  struct Choice {
    std::string text;
    ToolCallReader reader{ToolForm::None};
    std::vector<ToolCall> calls;
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
