#include "generation/stop_filter.h"

#include <algorithm>

#include "base/begun.h"

namespace stagecraft {
std::string StopFilter::push(std::string_view piece) {
  if (stopped_) return {};
  held_ += piece;
  std::size_t first_stop = std::string::npos;
  std::size_t hold = 0;
  for (const std::string& stop : stops_) {
    if (stop.empty()) continue;
    first_stop = std::min(first_stop, held_.find(stop));
    hold = std::max(hold, begun(held_, stop));
  }
  if (first_stop != std::string::npos) {
    stopped_ = true;
    std::string shown = held_.substr(0, first_stop);
    held_.clear();
    return shown;
  }
  std::string shown = held_.substr(0, held_.size() - hold);
  held_.erase(0, shown.size());
  return shown;
}

}  // namespace stagecraft
