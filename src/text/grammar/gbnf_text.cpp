#include "text/grammar/gbnf_text.h"

#include <fmt/format.h>

namespace stagecraft {

std::string gbnf_literal(std::string_view text) {
  std::string literal = "\"";
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      literal += fmt::format("\\x{:02x}", static_cast<unsigned>(c));
    } else {
      if (c == '"' || c == '\\') literal += '\\';
      literal += c;
    }
  }
  return literal + "\"";
}

std::string gbnf_choice(const std::vector<std::string>& ways) {
  std::string result = "(";
  for (const std::string& way : ways) result += (result.size() > 1 ? " | " : "") + way;
  return result + ")";
}

}  // namespace stagecraft
