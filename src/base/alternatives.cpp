#include "base/alternatives.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace stagecraft {

std::string alternatives(std::vector<std::string_view> names) {
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  const std::string_view last = names.back();
  names.pop_back();
  return names.empty() ? std::string(last) : fmt::format("{} or {}", fmt::join(names, ", "), last);
}

}  // namespace stagecraft
