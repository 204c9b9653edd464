#pragma once

#include <string>

#include "serve/scheduler.h"

namespace stagecraft {

// The answer to one request for text, written from the events of its texts: one JSON object at the
// end, or a stream of server-sent events. Knows no connection.
class Answer {
 public:
  virtual ~Answer() = default;

  virtual bool is_stream() const = 0;
  // What a stream begins with; "" where there is nothing to say yet.
  virtual std::string begin() = 0;
  // An event of text `index`. Returns what a stream says now; "" in an answer in one piece.
  virtual std::string add(std::size_t index, const TextEvent& event) = 0;
  // Has every text ended?
  virtual bool is_complete() const = 0;
  // The whole answer, or the end of the stream.
  virtual std::string finish() = 0;
  // What went wrong with the first text that failed; empty if none did.
  virtual const std::string& error() const = 0;
};

}  // namespace stagecraft
