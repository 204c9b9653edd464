#include <algorithm>
#include <utility>
#include <vector>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/ascii.h"
#include "base/error.h"
#include "base/number.h"
#include "base/utf8.h"
#include "text/pipeline/regex.h"

namespace stagecraft {
namespace {

// The contents of character classes. kSpace: White_Space; PCRE2's \s would add U+180E.
// kWordProperty: \w of UTS 18, with Oniguruma's fractions and superscripts of Latin-1 at the end;
// PCRE2's \w lacks marks (before 10.43) and has all of N*. kWordInClass: without that end, as
// Oniguruma reads \w in a character class. kPunctuation: includes symbols.
constexpr std::string_view kSpace = R"(\t-\r\x{85}\p{Z})";
constexpr std::string_view kWordProperty =
    R"(\p{L}\p{M}\p{Nl}\p{Nd}\p{Pc}\x{24b6}-\x{24e9}\x{1f130}-\x{1f149}\x{1f150}-\x{1f169}\x{1f170}-\x{1f189}\x{b2}\x{b3}\x{b9}\x{bc}-\x{be})";
constexpr std::string_view kWordInClass = kWordProperty.substr(0, kWordProperty.find(R"(\x{b2})"));
constexpr std::string_view kHexDigit = "0-9a-fA-F";
constexpr std::string_view kPunctuation = R"(\p{P}\p{S})";

constexpr std::size_t kMaxRepeated = 100;  // each takes time that grows with the pattern

class Translator {
 public:
  Translator(std::string_view pattern, std::string_view where) : in_(pattern), where_(where) {}

  std::string run() {
    while (at_ < in_.size()) step();
    return std::move(out_);
  }

 private:
  bool next_is(std::string_view text) const { return in_.substr(at_).starts_with(text); }

  void copy(std::size_t n) {
    out_ += in_.substr(at_, n);
    at_ += std::min(n, in_.size() - at_);
  }

  void replace(std::size_t n, std::string_view text) {
    out_ += text;
    at_ += n;
  }

  [[noreturn]] void refuse(std::string_view what) const {
    throw Error("{}: {} in a pattern is not supported, found in '{}'", where_, what,
                printable(in_));
  }

  void step() {
    const char c = in_[at_];
    if (in_class_) return c == '\\' ? escape() : class_step();
    if (next_is("(?#")) {  // a comment, not part of the pattern
      const std::size_t end = in_.find(')', at_);
      return copy(end == std::string_view::npos ? in_.size() - at_ : end + 1 - at_);
    }
    if (is_repetition()) return repetition();
    if (c == ')') return close_group();
    if (!utf8_is_continuation(c)) atom_ = out_.size();
    if (c == '\\') return escape();
    if (c == '{') return replace(1, "\\{");  // as no {n} is here
    if (c == '[') return open_class();
    if (c == '(') groups_.push_back(atom_);
    if (next_is("(?")) return group_options();
    copy(1);
  }

  void close_group() {
    if (!groups_.empty()) {
      atom_ = groups_.back();
      groups_.pop_back();
    }
    copy(1);
  }

  std::string_view digits_at(std::size_t at) const {
    const std::size_t end = in_.find_first_not_of("0123456789", at);
    return in_.substr(at, end == std::string_view::npos ? end : end - at);
  }

  // The length of {n}, {n,}, {n,m} or {,m}; 0 if none of them is here.
  std::size_t interval_length() const {
    if (!next_is("{")) return 0;
    const std::string_view low = digits_at(at_ + 1);
    std::size_t end = at_ + 1 + low.size();
    bool has_digits = !low.empty();
    if (end < in_.size() && in_[end] == ',') {
      const std::string_view high = digits_at(end + 1);
      has_digits = has_digits || !high.empty();
      end += 1 + high.size();
    }
    return has_digits && end < in_.size() && in_[end] == '}' ? end + 1 - at_ : 0;
  }

  bool is_repetition() const {
    return next_is("*") || next_is("+") || next_is("?") || interval_length() != 0;
  }

  // PCRE2 would take {n,m}+ for possessive and {n}? for lazy. Here they repeat a repetition, which
  // PCRE2 allows only of a group: (?:X{n,m})+ and (?:X{n})?.
  void repetition() {
    if (const std::size_t length = interval_length(); length == 0) {
      copy(1);
      if (next_is("?") || next_is("+")) copy(1);
    } else {
      const std::string_view counts = in_.substr(at_ + 1, length - 2);
      copy(1);
      if (counts.front() == ',') out_ += '0';
      copy(length - 1);
      if (counts.find(',') != std::string_view::npos && next_is("?")) copy(1);
    }
    if (!is_repetition()) return;
    if (is_extended_) refuse("(?x) with a repetition of a repetition");
    if (++n_repeated_ > kMaxRepeated) refuse("more than 100 repetitions of repetitions");
    out_.insert(atom_, "(?:");
    out_ += ')';
  }

  void open_class() {
    in_class_ = true;
    copy(1);
    if (next_is("^")) copy(1);
    if (next_is("]")) copy(1);  // as the first character it stands for itself
  }

  void class_step() {
    if (next_is("&&")) refuse("&& in a character class");
    if (next_is("[:")) return posix_class();
    if (in_[at_] == '[') refuse("a character class in a character class");
    if (in_[at_] == ']') in_class_ = false;
    copy(1);
  }

  void posix_class() {
    constexpr std::pair<std::string_view, std::string_view> kClasses[] = {
        {"[:space:]", kSpace},     {"[:word:]", kWordInClass},  {"[:digit:]", R"(\p{Nd})"},
        {"[:xdigit:]", kHexDigit}, {"[:punct:]", kPunctuation},
    };
    for (const auto& [name, inside] : kClasses) {
      if (next_is(name)) return replace(name.size(), inside);
    }
    const std::size_t end = std::min(in_.find(']', at_), in_.size() - 1);
    refuse(fmt::format("'{}'", printable(in_.substr(at_, end + 1 - at_))));
  }

  // Oniguruma's (?m) makes the dot match a newline; in PCRE2 that is (?s).
  void group_options() {
    copy(2);
    while (at_ < in_.size() && std::string_view("imx-").find(in_[at_]) != std::string_view::npos) {
      if (in_[at_] == 'm') {
        replace(1, "s");
      } else {
        is_extended_ = is_extended_ || in_[at_] == 'x';
        copy(1);
      }
    }
  }

  // Writes a set: plain inside a class, in its own brackets outside.
  void set(std::string_view inside, bool negated) {
    if (!in_class_) return replace(2, fmt::format("[{}{}]", negated ? "^" : "", inside));
    if (negated) refuse(fmt::format("'{}' in a character class", in_.substr(at_, 2)));
    replace(2, inside);
  }

  void escape() {
    if (at_ + 1 == in_.size()) return copy(1);  // PCRE2 reports it
    switch (in_[at_ + 1]) {
      case 's':
        return set(kSpace, false);
      case 'S':
        return in_class_ ? copy(2) : set(kSpace, true);
      case 'w':
        return set(in_class_ ? kWordInClass : kWordProperty, false);
      case 'W':
        return set(kWordProperty, true);
      case 'h':
        return set(kHexDigit, false);
      case 'H':
        return set(kHexDigit, true);
      case 'v':
        return replace(2, R"(\x{0b})");
      case 'u':
        return wide_hex();
      case 'b':
        return in_class_ ? copy(2) : boundary("(?:(?<=[{0}])(?![{0}])|(?<![{0}])(?=[{0}]))");
      case 'B':
        return in_class_ ? copy(2) : boundary("(?:(?<=[{0}])(?=[{0}])|(?<![{0}])(?![{0}]))");
      case 'p':
      case 'P':
        return property();
      case 'x':
        return copy(next_is("\\x{") ? std::min(in_.find('}', at_), in_.size() - 1) + 1 - at_ : 2);
      default:
        return copy(2);
    }
  }

  void boundary(const char* pattern) {
    replace(2, fmt::format(fmt::runtime(pattern), kWordProperty));
  }

  void wide_hex() {  // \uHHHH
    const std::string_view digits = in_.substr(std::min(at_ + 2, in_.size())).substr(0, 4);
    if (digits.size() != 4 || !integer_of<std::uint32_t>(digits, 16)) {
      refuse("'\\u' without four hexadecimal digits");
    }
    replace(6, fmt::format("\\x{{{}}}", digits));
  }

  // In Oniguruma, \p{Han} is a script. From PCRE2 10.40 on it would be Script_Extensions, a larger
  // set.
  void property() {
    const std::size_t close = in_.find('}', at_);
    if (at_ + 2 >= in_.size() || in_[at_ + 2] != '{' || close == std::string_view::npos) {
      return copy(2);
    }
    const std::string_view name = in_.substr(at_ + 3, close - at_ - 3);
    // Names of one or two letters are general categories.
    const bool is_script = name.size() > 2 && name != "Any" &&
                           std::all_of(name.begin(), name.end(),
                                       [](char c) { return is_ascii_letter(c) || c == '_'; });
    if (is_script && PCRE2_MAJOR * 100 + PCRE2_MINOR >= 1040) {
      return replace(close + 1 - at_, fmt::format("\\{}{{sc:{}}}", in_[at_ + 1], name));
    }
    copy(close + 1 - at_);
  }

  std::string_view in_;
  std::string_view where_;
  std::size_t at_ = 0;
  bool in_class_ = false;
  bool is_extended_ = false;  // (?x) was seen: blanks and comments may stand anywhere
  std::string out_;
  std::size_t atom_ = 0;             // where in out_ the item begins that a {n,m} repeats
  std::vector<std::size_t> groups_;  // where in out_ the open groups begin
  std::size_t n_repeated_ = 0;       // repetitions of repetitions
};

}  // namespace

std::string translate_oniguruma(std::string_view pattern, std::string_view where) {
  return Translator(pattern, where).run();
}

}  // namespace stagecraft
