#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "text/vocabulary.h"

namespace stagecraft {

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
