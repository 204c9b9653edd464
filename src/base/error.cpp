#include "base/error.h"

#include <algorithm>

#include "base/utf8.h"

namespace stagecraft {

Error::Error(const std::string& message)
    : std::runtime_error(printable(message, std::string::npos)) {}

Error::Error(fmt::format_args args, fmt::string_view format) : Error(fmt::vformat(format, args)) {}

std::string printable(std::string_view text, std::size_t max_bytes) {
  const auto is_plain = [](char c) { return c >= ' ' && c <= '~'; };
  if (text.size() <= max_bytes && std::ranges::all_of(text, is_plain)) return std::string(text);
  std::string out;
  std::size_t at = 0;
  while (at < text.size()) {
    if (out.size() >= max_bytes) return out + "...";
    const std::string_view rest = text.substr(at);
    const std::size_t length = utf8_sequence_length(rest);
    const std::string_view character = rest.substr(0, std::max<std::size_t>(1, length));
    if (length == 0 || utf8_controls_terminal(rest)) {
      for (const char c : character) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      out += character;
    }
    at += character.size();
  }
  return out;
}

}  // namespace stagecraft
