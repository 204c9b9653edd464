#include "text/pipeline/byte_level.h"

#include <array>

#include "base/utf8.h"
#include "text/unicode.h"

namespace stagecraft {
namespace {

constexpr char32_t kEndOfAlphabet = 0x144;

bool stands_for_itself(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

struct Alphabet {
  std::array<std::string, 256> characters;
  std::array<int, kEndOfAlphabet> bytes;  // -1: not in the alphabet

  Alphabet() {
    bytes.fill(-1);
    char32_t next = 0x100;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const char32_t c = stands_for_itself(byte) ? byte : next++;
      append_utf8(characters[byte], c);
      bytes[c] = static_cast<int>(byte);
    }
  }
};

const Alphabet& alphabet() {
  static const Alphabet instance;
  return instance;
}

}  // namespace

void append_byte_level(std::string& text, std::string_view bytes) {
  const Alphabet& letters = alphabet();
  for (const char byte : bytes) text += letters.characters[static_cast<unsigned char>(byte)];
}

std::optional<std::string> bytes_of_byte_level(std::string_view text) {
  const Alphabet& letters = alphabet();
  std::string bytes;
  bytes.reserve(text.size());
  while (!text.empty()) {
    if (utf8_sequence_length(text) == 0) return std::nullopt;
    const CodePoint c = first_code_point(text);
    if (c.value >= kEndOfAlphabet || letters.bytes[c.value] < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(letters.bytes[c.value]));
    text.remove_prefix(c.length);
  }
  return bytes;
}

}  // namespace stagecraft
