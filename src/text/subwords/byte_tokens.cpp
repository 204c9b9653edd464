#include "text/subwords/byte_tokens.h"

#include <fmt/format.h>

#include <charconv>

namespace stagecraft {

std::string byte_token_text(unsigned char byte) { return fmt::format("<0x{:02X}>", byte); }

std::optional<unsigned char> byte_of_token(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return std::nullopt;
  unsigned char byte = 0;
  const auto [end, failed] = std::from_chars(&text[3], &text[5], byte, 16);
  if (failed != std::errc() || end != &text[5]) return std::nullopt;
  return byte;
}

ByteTokens::ByteTokens(const Vocabulary& vocabulary) {
  for (std::size_t byte = 0; byte < tokens_.size(); ++byte) {
    tokens_[byte] = vocabulary.find(byte_token_text(static_cast<unsigned char>(byte)));
  }
}

}  // namespace stagecraft
