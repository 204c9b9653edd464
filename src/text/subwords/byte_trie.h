#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "base/token.h"
#include "text/subwords/pair_table.h"

namespace stagecraft {

// Texts, each with the id of a token: which of them does another text begin with?
class ByteTrie {
 public:
  ByteTrie() = default;
  // No text is empty and none comes twice. They are not needed afterwards.
  explicit ByteTrie(std::vector<std::pair<std::string_view, TokenId>> texts);

  // Calls found(length, id) for each that `text` begins with, the shortest first.
  template <class Found>
  void prefixes(std::string_view text, Found found) const {
    std::int32_t node = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const Step* step = steps_.find(node, static_cast<unsigned char>(text[i]));
      if (step == nullptr) return;
      if (step->id >= 0) found(i + 1, step->id);
      node = step->node;
    }
  }

  // How long the longest of them is; 0 if it begins with none.
  std::size_t longest_prefix(std::string_view text) const {
    std::size_t longest = 0;
    prefixes(text, [&](std::size_t length, TokenId) { longest = length; });
    return longest;
  }

 private:
  struct Step {
    std::int32_t node;  // where it leads
    TokenId id;         // of the text that ends there, or -1
  };
  PairTable<Step> steps_;  // by node and byte; the root is node 0
};

}  // namespace stagecraft
