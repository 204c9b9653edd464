#pragma once

#include <ctime>
#include <optional>
#include <string>

#include "serve/api_error.h"
#include "serve/request_fields.h"
#include "serve/text_request.h"
#include "text/tool_calls.h"

namespace stagecraft {

// What a request says about the form of its answer.
struct AnswerForm {
  bool chat = false;
  bool stream = false;
  bool include_usage = false;  // in a stream; other answers always have it
  bool logprobs = false;
  std::size_t n = 1;                    // texts per prompt
  ToolForm tool_form = ToolForm::None;  // how the model writes calls; None: it may write no calls
  std::string grammar_field;            // the field that gives the grammar; "": none does
};

// What every answer begins with.
struct AnswerHead : AnswerForm {
  std::string id;     // "chatcmpl-1f", "6b01706e000001"
  std::string model;  // its name
  std::time_t created = 0;
};

// Writes the answer to one request for text from the events of its texts: either one JSON object at
// the end, or a stream of server-sent events. It does not know the connection.
class Answer {
 public:
  virtual ~Answer() = default;

  virtual bool is_stream() const = 0;
  // The first bytes of a stream; "" if there are none yet.
  virtual std::string begin() = 0;
  // Adds an event of text `index`. Returns the bytes that a stream sends now; "" if this is no
  // stream.
  virtual std::string add(std::size_t index, const TextEvent& event) = 0;
  // True if every text has ended.
  virtual bool is_complete() const = 0;
  // Returns the whole answer, or the last bytes of the stream.
  virtual std::string finish() = 0;
  // The error of the first text that failed; nullopt if no text failed.
  virtual std::optional<ApiError> error() const = 0;
};

// Whether a limit ended the text before the model did.
inline bool is_cut(StopReason reason) {
  return reason == StopReason::MaxTokens || reason == StopReason::ContextFull;
}

// The error of a text that failed. grammar_field: the field of the request that gives the grammar.
inline ApiError error_of(const TextEnd& end, const std::string& grammar_field) {
  if (!end.grammar_failed) return ApiError::server_error(end.error);
  return ApiError::bad_request(grammar_field,
                               fmt::format("{}: {}", place_of(grammar_field), end.error));
}

}  // namespace stagecraft
