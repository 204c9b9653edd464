#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stagecraft {

// Lets a stream of text pass until one of the stop texts appears in it. What may be the beginning
// of a stop text is held back until more text decides.
class StopFilter {
 public:
  explicit StopFilter(std::vector<std::string> stops) : stops_(std::move(stops)) {}

  // Takes the next piece; returns what can be shown now.
  std::string push(std::string_view piece);
  // The stream has ended: what was held back was no stop text.
  std::string finish() { return std::exchange(held_, {}); }

  bool stopped() const { return stopped_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace stagecraft
