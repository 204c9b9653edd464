#include "text/grammar/json_range.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "text/grammar/gbnf_text.h"

namespace stagecraft {
namespace {

std::string digits(char first, char last) { return fmt::format("[{}-{}]", first, last); }

// ---- before the point ---------------------------------------------------------------------------

// Digits from `low` to `high`, which must have the same length.
std::string digits_between(std::string_view low, std::string_view high) {
  if (low.empty()) return "";
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

// Numbers as texts without leading zeros: a longer one is larger.
bool is_less(const std::string& a, const std::string& b) {
  return a.size() != b.size() ? a.size() < b.size() : a < b;
}

std::string one_more(std::string number) {
  const std::size_t at = number.find_last_not_of('9');
  if (at == std::string::npos) return "1" + std::string(number.size(), '0');
  ++number[at];
  std::fill(number.begin() + static_cast<std::ptrdiff_t>(at) + 1, number.end(), '0');
  return number;
}

// `number` must not be 0.
std::string one_less(std::string number) {
  const std::size_t at = number.find_last_not_of('0');
  --number[at];
  std::fill(number.begin() + static_cast<std::ptrdiff_t>(at) + 1, number.end(), '9');
  return number.size() > 1 && number[0] == '0' ? number.substr(1) : number;
}

std::string whole_between(std::string from, const std::string& to) {
  std::vector<std::string> ways;
  for (; from.size() < to.size(); from = "1" + std::string(from.size(), '0')) {
    ways.push_back(digits_between(from, std::string(from.size(), '9')));
  }
  ways.push_back(digits_between(from, to));
  return gbnf_choice(ways);
}

// ---- after the point ----------------------------------------------------------------------------

// A bound of the digits that follow. Behind its own digits there are only zeros.
struct Rest {
  std::string_view digits;
  bool exclusive;

  char first() const { return digits.empty() ? '0' : digits[0]; }
  Rest next() const { return {digits.substr(digits.empty() ? 0 : 1), exclusive}; }
};
using Bound = std::optional<Rest>;

// A lower bound of 0 is none.
Bound lower(const Rest& rest) {
  return rest.digits.empty() && !rest.exclusive ? Bound() : Bound(rest);
}

// Whether the number may end here, which is as if zeros followed.
bool may_end(const Bound& low, const Bound& high) {
  return !low && (!high || !high->digits.empty() || !high->exclusive);
}

std::optional<std::string> decimals(const Bound& low, const Bound& high, std::size_t n);

// The digit from `first` to `last`, and what may follow it.
void add_digit(char first, char last, const Bound& low, const Bound& high, std::size_t n,
               std::vector<std::string>& ways) {
  if (first > last) return;
  const auto rest = decimals(low, high, n - 1);
  const std::string digit = digits(first, last);
  if (may_end(low, high)) {
    ways.push_back(rest ? fmt::format("{} ({})?", digit, *rest) : digit);
  } else if (rest) {
    ways.push_back(digit + " " + *rest);
  }
}

// 1 to n digits between the bounds; nullopt if there are none.
std::optional<std::string> decimals(const Bound& low, const Bound& high, std::size_t n) {
  if (n == 0) return std::nullopt;
  if (!low && !high) return fmt::format("[0-9]{{1,{}}}", n);
  const char from = low ? low->first() : '0', to = high ? high->first() : '9';
  const Bound after_low = low ? lower(low->next()) : low;
  const Bound after_high = high ? Bound(high->next()) : high;
  std::vector<std::string> ways;
  if (low && high && from == to) {
    add_digit(from, to, after_low, after_high, n, ways);
  } else if (from <= to) {
    if (low) add_digit(from, from, after_low, {}, n, ways);
    add_digit(static_cast<char>(from + (low ? 1 : 0)), static_cast<char>(to - (high ? 1 : 0)), {},
              {}, n, ways);
    if (high) add_digit(to, to, {}, after_high, n, ways);
  }
  if (ways.empty()) return std::nullopt;
  return gbnf_choice(ways);
}

// The point and the decimals; "" if none are possible, nullopt if the number cannot go on or end.
std::optional<std::string> fraction(const Bound& low, const Bound& high, std::size_t n) {
  const auto some = decimals(low, high, n);
  if (may_end(low, high)) return some ? fmt::format(" (\".\" {})?", *some) : "";
  if (!some) return std::nullopt;
  return " \".\" " + *some;
}

// ---- both ---------------------------------------------------------------------------------------

Rest rest_of(const RangeBound& bound) { return {bound.fraction, bound.exclusive}; }

// Adds the numbers from low to high, whose signs do not count.
void add_between(const RangeBound& low, const std::optional<RangeBound>& high, std::size_t n,
                 const std::string& sign, std::vector<std::string>& ways) {
  const auto add = [&](const std::string& from, const std::string& to,
                       const std::optional<std::string>& decimals) {
    if (decimals && !is_less(to, from)) ways.push_back(sign + whole_between(from, to) + *decimals);
  };
  if (high && high->whole == low.whole) {
    return add(low.whole, low.whole, fraction(lower(rest_of(low)), rest_of(*high), n));
  }
  const auto any = fraction({}, {}, n), first = fraction(lower(rest_of(low)), {}, n);
  std::string from = low.whole, to(std::max<std::size_t>(16, from.size()), '9');
  if (high && is_less(high->whole, from)) return;
  if (first != any) {
    add(from, from, first);
    from = one_more(from);
  }
  if (high) {
    to = high->whole;
    const auto last = fraction({}, rest_of(*high), n);
    if (last != any) {
      add(to, to, last);
      to = one_less(to);
    }
  }
  add(from, to, any);
}

}  // namespace

bool RangeBound::operator<(const RangeBound& other) const {
  if (negative != other.negative) return negative;
  const RangeBound &nearer = negative ? other : *this, &farther = negative ? *this : other;
  if (nearer.whole != farther.whole) return is_less(nearer.whole, farther.whole);
  return nearer.fraction < farther.fraction;
}

std::optional<std::string> range_gbnf(const std::optional<RangeBound>& low,
                                      const std::optional<RangeBound>& high,
                                      std::size_t n_decimals) {
  const RangeBound above_zero{.exclusive = true}, zero;
  std::vector<std::string> ways;
  if (!low || low->negative) {  // the absolute values, after a "-"
    add_between(high && high->negative ? *high : above_zero, low, n_decimals, "\"-\" ", ways);
  }
  if (!high || !high->negative) {
    add_between(low && !low->negative ? *low : zero, high, n_decimals, "", ways);
  }
  if (ways.empty()) return std::nullopt;
  return gbnf_choice(ways);
}

}  // namespace stagecraft
