#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace stagecraft {

// The texts of all tokens as one tree of bytes (a trie). Tokens with the same beginning share its
// nodes, so a grammar checks the beginning once for all of them. Special tokens have no text and
// are not in the tree. Immutable.
class TokenTrie {
 public:
  explicit TokenTrie(const Tokenizer& tokenizer);

  // A node stands for one byte. Its text is the bytes of its ancestors, then its own byte. Nodes
  // are in preorder: the descendants of node i are nodes i + 1 to end - 1.
  struct Node {
    std::uint32_t end = 0;
    std::uint32_t depth = 0;  // length of its text in bytes: 1 or more
    std::uint32_t first_token = 0;
    std::uint8_t byte = 0;
  };
  std::span<const Node> nodes() const { return nodes_; }
  // The tokens whose text is that of node i.
  std::span<const TokenId> tokens_of(std::size_t i) const {
    const std::size_t end = i + 1 < nodes_.size() ? nodes_[i + 1].first_token : tokens_.size();
    return std::span(tokens_).first(end).subspan(nodes_[i].first_token);
  }

  std::size_t vocab_size() const { return texts_.size(); }
  std::size_t max_depth() const { return max_depth_; }
  // The bytes of a token. Empty for a special token and for an id without a token.
  std::string_view text(TokenId token) const;

 private:
  void add(std::string_view text, TokenId token, std::vector<std::uint32_t>& path);

  std::string bytes_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> texts_;  // by id: offset, length
  std::vector<Node> nodes_;
  std::vector<TokenId> tokens_;  // in the order of their nodes
  std::size_t max_depth_ = 0;
};

}  // namespace stagecraft
