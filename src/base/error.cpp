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
    const std::size_t length = utf8_sequence_length(text.substr(at));
    const auto byte = static_cast<unsigned char>(text[at]);
    if (length == 0 || byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
      at += 1;
    } else {
      out += text.substr(at, length);
      at += length;
    }
  }
  return out;
}

}  // namespace stagecraft
