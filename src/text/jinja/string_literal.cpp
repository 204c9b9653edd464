#include "text/jinja/string_literal.h"

#include <algorithm>
#include <cstdint>

#include "base/error.h"
#include "base/number.h"
#include "text/jinja/failure.h"
#include "text/unicode.h"

namespace stagecraft::jinja {
namespace {

constexpr char32_t kNoCharacter = 0xffffffff;

// Reads up to `most` digits (at most 8) of base 8 or 16 from the beginning of `text`, and removes
// them.
char32_t take_number(std::string_view& text, int base, std::size_t most, std::size_t least) {
  const char* const known = base == 16 ? "0123456789abcdefABCDEF" : "01234567";
  const std::string_view digits = text.substr(0, std::min(most, text.find_first_not_of(known)));
  text.remove_prefix(digits.size());
  const std::uint32_t value = integer_of<std::uint32_t>(digits, base).value_or(kNoCharacter);
  return digits.size() >= least && is_character(value) ? value : kNoCharacter;
}

}  // namespace

std::string unescape(std::string_view text, int line) {
  std::string result;
  while (!text.empty()) {
    const std::size_t escape = text.find('\\');
    result += text.substr(0, escape);
    if (escape == std::string_view::npos) break;
    text.remove_prefix(escape);
    const std::string_view whole = text;
    const char c = text[1];  // a string never ends in a single backslash
    text.remove_prefix(2);
    constexpr std::string_view kFrom = "\\'\"abfnrtv", kTo = "\\'\"\a\b\f\n\r\t\v";
    if (const std::size_t simple = kFrom.find(c); simple != std::string_view::npos) {
      result += kTo[simple];
      continue;
    }
    if (c == '\n') continue;
    char32_t value = 0;
    if (c == 'x') {
      value = take_number(text, 16, 2, 2);
    } else if (c == 'u') {
      value = take_number(text, 16, 4, 4);
    } else if (c == 'U') {
      value = take_number(text, 16, 8, 8);
    } else if (c >= '0' && c <= '7') {
      text = whole.substr(1);
      value = take_number(text, 8, 3, 1);
    } else if (c == 'N') {
      value = kNoCharacter;
    } else {
      result += '\\';
      result += c;
      continue;
    }
    if (value == kNoCharacter) {
      throw SyntaxFailure(line, fmt::format("expected a valid escape sequence, found '{}'",
                                            printable(whole.substr(0, 12))));
    }
    append_utf8(result, value);
  }
  return result;
}

}  // namespace stagecraft::jinja
