#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "base/token.h"
#include "text/subwords/pair_table.h"

namespace stagecraft {

// The longest token that may be searched for at every place of a text: a text may repeat almost all
// of such a token, and then each place costs its length.
inline constexpr std::size_t kMaxTokenBytes = 1024;

// A map from texts to token ids. Finds the texts that are prefixes of another text.
class ByteTrie {
 public:
  ByteTrie() = default;
  // Texts must be non-empty and distinct. They may be freed afterwards.
  explicit ByteTrie(std::vector<std::pair<std::string_view, TokenId>> texts);

  // Calls found(length, id) for each text that is a prefix of `text`, the shortest first.
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

  // The length of the longest prefix; 0 if there is none.
  std::size_t longest_prefix(std::string_view text) const {
    std::size_t longest = 0;
    prefixes(text, [&](std::size_t length, TokenId) { longest = length; });
    return longest;
  }

 private:
  struct Step {
    std::int32_t node;  // the next node
    TokenId id;         // of the text that ends here, or -1
  };
  PairTable<Step> steps_;  // by node and byte; the root is node 0
};

}  // namespace stagecraft
