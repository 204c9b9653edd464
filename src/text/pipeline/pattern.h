#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/json.h"
#include "text/pipeline/regex.h"

namespace stagecraft {

// The search pattern of a Split or Replace: {"String": "..."} or {"Regex": "..."}.
class Pattern {
 public:
  static Pattern read(const JsonNode& node);

  // Like Regex::find_all. An empty String matches between all characters.
  void find_all(std::string_view text, std::vector<Match>& matches) const;

 private:
  explicit Pattern(std::variant<std::string, Regex> what) : what_(std::move(what)) {}
  std::variant<std::string, Regex> what_;
};

// The same for single characters: each character that satisfies `predicate` is a separate match.
void find_characters(std::string_view text, const std::function<bool(char32_t)>& predicate,
                     std::vector<Match>& matches);

}  // namespace stagecraft
