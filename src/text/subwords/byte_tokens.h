#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "text/vocabulary.h"

namespace stagecraft {

// "<0x4A>", the text of the token that stands for one byte. Tokenizers write its digits in upper
// case and look only for such tokens when they encode.
std::string byte_token_text(unsigned char byte);
// The byte that such a token stands for; nullopt for any other text. Digits in lower case count
// too, as they do when Hugging Face's ByteFallback and llama.cpp decode.
std::optional<unsigned char> byte_of_token(std::string_view text);

// The tokens <0x00> to <0xFF> of a vocabulary, in which text is spelt that nothing else spells.
class ByteTokens {
 public:
  ByteTokens() = default;
  explicit ByteTokens(const Vocabulary& vocabulary);

  // Gives the token of each byte to `append`. False, and nothing given, if there is none for one.
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
