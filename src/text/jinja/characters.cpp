#include "text/jinja/characters.h"

#include "text/unicode.h"

namespace stagecraft::jinja {

bool is_space(char32_t c) { return is_whitespace(c) || (c >= 0x1c && c <= 0x1f); }

void append_in_case(std::string& text, char32_t c, bool up, bool whole_word_up) {
  if (up && c == U'ß') {
    text += whole_word_up ? "SS" : "Ss";
  } else {
    append_utf8(text, up ? to_upper(c) : to_lower(c));
  }
}

std::size_t byte_of_character(std::string_view text, std::size_t index) {
  std::size_t at = 0;
  for (; index > 0 && at < text.size(); --index) at += first_code_point(text.substr(at)).length;
  return at;
}

std::size_t leading_space(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const CodePoint c = first_code_point(text.substr(at));
    if (!is_space(c.value)) break;
    at += c.length;
  }
  return at;
}

std::size_t trailing_space(std::string_view text) {
  std::size_t end = text.size();
  while (end > 0) {
    const CodePoint c = last_code_point(text.substr(0, end));
    if (!is_space(c.value)) break;
    end -= c.length;
  }
  return text.size() - end;
}

}  // namespace stagecraft::jinja
