#include "text/subwords/byte_trie.h"

#include <algorithm>

namespace stagecraft {
namespace {

std::size_t common_prefix(std::string_view a, std::string_view b) {
  const auto [end, other] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return static_cast<std::size_t>(end - a.begin());
}

}  // namespace

// With sorted texts, each text shares the nodes of its common prefix with the previous text and
// needs new nodes only for the rest.
ByteTrie::ByteTrie(std::vector<std::pair<std::string_view, TokenId>> texts) {
  std::ranges::sort(texts);
  std::size_t n_nodes = 0;
  std::string_view previous;
  for (const auto& [text, id] : texts) {
    n_nodes += text.size() - common_prefix(text, previous);
    previous = text;
  }
  steps_.reset(n_nodes);

  std::int32_t last_node = 0;
  std::vector<std::int32_t> way = {0};  // the nodes of the previous text, from the root
  previous = {};
  for (const auto& [text, id] : texts) {
    way.resize(common_prefix(text, previous) + 1);
    for (std::size_t i = way.size() - 1; i < text.size(); ++i) {
      ++last_node;
      const bool ends = i + 1 == text.size();
      steps_.set(way.back(), static_cast<unsigned char>(text[i]), {last_node, ends ? id : -1});
      way.push_back(last_node);
    }
    previous = text;
  }
}

}  // namespace stagecraft
