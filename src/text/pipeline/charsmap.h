#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft {

// Sentencepiece's "precompiled_charsmap": rules that replace characters, stored as a trie of the
// texts to replace, followed by their replacements:
//   4 bytes   the size of the trie
//   the trie  a double array (Aoe 1989) of 4-byte units, little-endian, in Darts-clone's layout
//   the rest  texts in UTF-8, each ended by a zero byte; a leaf of the trie says where one begins
class Charsmap {
 public:
  // Copies `blob`. Throws Error "WHERE: ..." if it is malformed.
  Charsmap(std::string_view blob, std::string where);

  struct Rule {
    std::size_t length;     // bytes that are replaced, at the beginning of the text
    std::string_view text;  // by this, which may be empty
  };
  // Of the rules for a text that `text` (UTF-8, not empty) begins with: the one with the longest /
  // the shortest such text. Throws Error if the trie leads outside itself, into the middle of a
  // character, or on for more than 1024 bytes.
  std::optional<Rule> longest(std::string_view text) const;
  std::optional<Rule> shortest(std::string_view text) const;

 private:
  template <class Found>
  void walk(std::string_view text, Found found) const;
  Rule rule_at(std::string_view text, std::size_t length, std::uint32_t place) const;
  [[noreturn]] void refuse(std::string_view text) const;

  std::vector<std::uint32_t> units_;
  std::string texts_;
  std::string where_;
};

}  // namespace stagecraft
