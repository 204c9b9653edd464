#include "text/jinja/string_literal.h"

#include "base/ascii.h"
#include "base/error.h"
#include "text/jinja/failure.h"
#include "text/unicode.h"

namespace stagecraft::jinja {
namespace {

constexpr char32_t kNoCharacter = 0xffffffff;

int digit_value(char c) {
  if (is_ascii_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return 16;
}

// Reads up to `most` digits of this base from the beginning of `text`, and removes them.
char32_t take_number(std::string_view& text, int base, std::size_t most, std::size_t least) {
  char32_t value = 0;
  std::size_t n = 0;
  for (; n < most && n < text.size() && digit_value(text[n]) < base; ++n) {
    value = value * static_cast<char32_t>(base) + static_cast<char32_t>(digit_value(text[n]));
  }
  text.remove_prefix(n);
  const bool is_character = value < 0x110000 && (value < 0xd800 || value > 0xdfff);
  return n >= least && is_character ? value : kNoCharacter;
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
