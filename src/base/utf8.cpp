#include "base/utf8.h"

#include <algorithm>

#include "base/error.h"

namespace stagecraft {
namespace {

struct Lead {
  std::size_t length;         // of the whole sequence; 0: no sequence starts with this byte
  unsigned char low = 0x80;   // limits of the second byte: they exclude overlong forms,
  unsigned char high = 0xbf;  // surrogates and values above U+10FFFF
};

Lead lead_of(unsigned char byte) {
  if (byte < 0x80) return {1};
  if (byte < 0xc2) return {0};
  if (byte < 0xe0) return {2};
  if (byte == 0xe0) return {3, 0xa0, 0xbf};
  if (byte == 0xed) return {3, 0x80, 0x9f};
  if (byte < 0xf0) return {3};
  if (byte == 0xf0) return {4, 0x90, 0xbf};
  if (byte < 0xf4) return {4};
  if (byte == 0xf4) return {4, 0x80, 0x8f};
  return {0};
}

// How many bytes at the beginning of `text` fit the sequence that the first one announces.
std::size_t agreeing_bytes(std::string_view text, const Lead& lead) {
  std::size_t n = 1;
  for (; n < lead.length && n < text.size(); ++n) {
    const auto byte = static_cast<unsigned char>(text[n]);
    const unsigned char low = n == 1 ? lead.low : 0x80;
    const unsigned char high = n == 1 ? lead.high : 0xbf;
    if (byte < low || byte > high) break;
  }
  return n;
}

}  // namespace

std::size_t utf8_sequence_length(std::string_view text) {
  if (text.empty()) return 0;
  const Lead lead = lead_of(static_cast<unsigned char>(text[0]));
  if (lead.length == 0) return 0;
  return agreeing_bytes(text, lead) == lead.length ? lead.length : 0;
}

bool utf8_controls_terminal(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (text.empty()) return false;
  if (byte(0) < 0x20 || byte(0) == 0x7f) return true;
  const std::size_t length = utf8_sequence_length(text);
  if (length == 2) return byte(0) == 0xc2 && byte(1) < 0xa0;
  if (length != 3 || byte(0) != 0xe2) return false;
  return (byte(1) == 0x80 && byte(2) >= 0xaa && byte(2) <= 0xae) ||
         (byte(1) == 0x81 && byte(2) >= 0xa6 && byte(2) <= 0xa9);
}

std::size_t utf8_error_offset(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t length = utf8_sequence_length(text.substr(at));
    if (length == 0) return at;
    at += length;
  }
  return std::string_view::npos;
}

void check_utf8(std::string_view what, std::string_view text) {
  if (const std::size_t at = utf8_error_offset(text); at != std::string_view::npos) {
    throw Error("{}: expected UTF-8, found the byte 0x{:02x} at offset {}", what,
                static_cast<unsigned char>(text[at]), at);
  }
}

std::size_t utf8_incomplete_tail(std::string_view text) {
  for (std::size_t n = 1; n <= std::min<std::size_t>(3, text.size()); ++n) {
    const std::string_view tail = text.substr(text.size() - n);
    const Lead lead = lead_of(static_cast<unsigned char>(tail[0]));
    if (lead.length > n && agreeing_bytes(tail, lead) == n) return n;
  }
  return 0;
}

std::string utf8_with_replacements(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Lead lead = lead_of(static_cast<unsigned char>(text[0]));
    const std::size_t n = lead.length == 0 ? 1 : agreeing_bytes(text, lead);
    if (n == lead.length) {
      out += text.substr(0, n);
    } else {
      out += "\xef\xbf\xbd";
    }
    text.remove_prefix(n);
  }
  return out;
}

}  // namespace stagecraft
