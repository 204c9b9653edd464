#include "text/grammar/token_trie.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace stagecraft {

TokenTrie::TokenTrie(const Tokenizer& tokenizer) {
  constexpr std::size_t kMaxBytes = std::size_t{1} << 28;
  for (std::size_t id = 0; id < tokenizer.vocab_size(); ++id) {
    const auto token = static_cast<TokenId>(id);
    const std::string text = tokenizer.is_special(token) ? "" : tokenizer.bytes_of(token);
    texts_.emplace_back(bytes_.size(), text.size());
    bytes_ += text;
    if (bytes_.size() > kMaxBytes) {
      throw Error("grammar: expected a vocabulary of at most {} bytes, found more", kMaxBytes);
    }
  }
  std::vector<TokenId> order(texts_.size());
  std::iota(order.begin(), order.end(), 0);
  std::erase_if(order, [&](TokenId token) { return text(token).empty(); });
  std::ranges::stable_sort(order, {}, [&](TokenId token) { return text(token); });
  std::vector<std::uint32_t> path;  // the nodes from the root to the last one
  for (const TokenId token : order) add(text(token), token, path);
  for (const std::uint32_t node : path)
    nodes_[node].end = static_cast<std::uint32_t>(nodes_.size());
}

// Texts arrive sorted, so a new node always comes after all others.
void TokenTrie::add(std::string_view text, TokenId token, std::vector<std::uint32_t>& path) {
  std::size_t shared = 0;
  while (shared < path.size() && shared < text.size() &&
         nodes_[path[shared]].byte == static_cast<std::uint8_t>(text[shared])) {
    ++shared;
  }
  const auto n_nodes = [&] { return static_cast<std::uint32_t>(nodes_.size()); };
  for (; path.size() > shared; path.pop_back()) nodes_[path.back()].end = n_nodes();
  for (std::size_t i = shared; i < text.size(); ++i) {
    path.push_back(n_nodes());
    Node& node = nodes_.emplace_back();
    node.depth = static_cast<std::uint32_t>(i + 1);
    node.byte = static_cast<std::uint8_t>(text[i]);
    node.first_token = static_cast<std::uint32_t>(tokens_.size());
  }
  max_depth_ = std::max(max_depth_, text.size());
  tokens_.push_back(token);
}

std::string_view TokenTrie::text(TokenId token) const {
  if (token < 0 || static_cast<std::size_t>(token) >= texts_.size()) return {};
  const auto [offset, length] = texts_[static_cast<std::size_t>(token)];
  return std::string_view(bytes_).substr(offset, length);
}

}  // namespace stagecraft
