#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stagecraft {

// Passes on a stream of text until one of the stop texts appears in it. Text that may be the
// beginning of a stop text is held back until more text decides.
class StopFilter {
 public:
  explicit StopFilter(std::vector<std::string> stops) : stops_(std::move(stops)) {}

  // Takes the next piece; returns the text that can be shown now.
  std::string push(std::string_view piece);
  // At the end of the stream: returns the text that was held back, which was not a stop text.
  std::string finish() { return std::exchange(held_, {}); }

  bool stopped() const { return stopped_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace stagecraft
