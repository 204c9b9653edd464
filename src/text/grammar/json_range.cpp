#include "text/grammar/json_range.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "text/grammar/gbnf_text.h"

namespace stagecraft {
namespace {

// Digits from `low` to `high`, which must have the same length.
std::string digits_between(std::string_view low, std::string_view high) {
  if (low.empty()) return "";
  const auto digits = [](char first, char last) { return fmt::format("[{}-{}]", first, last); };
  const auto any = [](std::size_t n) { return n == 0 ? "" : fmt::format(" [0-9]{{{}}}", n); };
  const std::string_view low_rest = low.substr(1), high_rest = high.substr(1);
  const std::size_t n = low_rest.size();
  if (low[0] == high[0]) {
    return digits(low[0], low[0]) + " " + digits_between(low_rest, high_rest);
  }
  const bool whole_low = low_rest.find_first_not_of('0') == std::string_view::npos;
  const bool whole_high = high_rest.find_first_not_of('9') == std::string_view::npos;
  const auto first = static_cast<char>(low[0] + (whole_low ? 0 : 1));
  const auto last = static_cast<char>(high[0] - (whole_high ? 0 : 1));
  std::vector<std::string> ways;
  if (!whole_low) {
    ways.push_back(digits(low[0], low[0]) + " " + digits_between(low_rest, std::string(n, '9')));
  }
  if (first <= last) ways.push_back(digits(first, last) + any(n));
  if (!whole_high) {
    ways.push_back(digits(high[0], high[0]) + " " + digits_between(std::string(n, '0'), high_rest));
  }
  return gbnf_choice(ways);
}

// Adds the integers from low to high, both at least 0. No high: up to 16 digits.
void add_whole_between(std::int64_t low, std::optional<std::int64_t> high, const std::string& sign,
                       std::vector<std::string>& ways) {
  std::string from = fmt::format("{}", low);
  const std::string to = high ? fmt::format("{}", *high) : std::string(16, '9');
  for (; from.size() < to.size(); from = "1" + std::string(from.size(), '0')) {
    ways.push_back(sign + digits_between(from, std::string(from.size(), '9')));
  }
  ways.push_back(sign + digits_between(from, to));
}

}  // namespace

std::string integer_range_gbnf(std::optional<std::int64_t> low, std::optional<std::int64_t> high) {
  std::vector<std::string> ways;
  if (!low || *low < 0) {  // the absolute values, after a "-"
    const std::int64_t nearest = high && *high < 0 ? -*high : 1;
    add_whole_between(nearest, low ? std::optional(-*low) : std::nullopt, "\"-\" ", ways);
  }
  if (!high || *high >= 0) {
    add_whole_between(std::max<std::int64_t>(low.value_or(0), 0), high, "", ways);
  }
  return gbnf_choice(ways);
}

}  // namespace stagecraft
