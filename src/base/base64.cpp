#include "base/base64.h"

#include <cstdint>

namespace stagecraft {

std::optional<std::string> bytes_of_base64(std::string_view text) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  if (text.size() % 4 != 0) return std::nullopt;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  std::size_t n_padding = 0;
  if (text.ends_with("==")) {
    n_padding = 2;
  } else if (text.ends_with('=')) {
    n_padding = 1;
  }
  text.remove_suffix(n_padding);
  std::uint32_t bits = 0;
  std::size_t n_bits = 0;
  for (const char c : text) {
    const std::size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    n_bits += 6;
    if (n_bits < 8) continue;
    n_bits -= 8;
    bytes += static_cast<char>(bits >> n_bits & 0xff);
  }
  if ((bits & ((1u << n_bits) - 1)) != 0) return std::nullopt;  // unused bits must be zero
  return bytes;
}

}  // namespace stagecraft
