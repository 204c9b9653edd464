#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "text/vocabulary.h"

namespace stagecraft {

// "<0x4A>": the text of the token for one byte. The digits are in upper case. Only such tokens are
// used for encoding.
std::string byte_token_text(unsigned char byte);
// The byte of such a token; nullopt for any other text. Lower-case digits are accepted, too, as
// Hugging Face's ByteFallback and llama.cpp do in decoding.
std::optional<unsigned char> byte_of_token(std::string_view text);

// The tokens <0x00> to <0xFF> of a vocabulary. They spell text that no other token spells.
class ByteTokens {
 public:
  ByteTokens() = default;
  explicit ByteTokens(const Vocabulary& vocabulary);

  // Calls append(token) for each byte. Returns false, without any call, if a byte has no token.
  template <class Append>
  bool spell(std::string_view bytes, Append append) const {
    const auto token = [this](char byte) { return tokens_[static_cast<unsigned char>(byte)]; };
    if (!std::all_of(bytes.begin(), bytes.end(), token)) return false;
    for (const char byte : bytes) append(*token(byte));
    return true;
  }

 private:
  std::array<std::optional<TokenId>, 256> tokens_ = {};
};

}  // namespace stagecraft
