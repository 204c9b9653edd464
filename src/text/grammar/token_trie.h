#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace stagecraft {

// The texts of a vocabulary as one tree of bytes, so that what tokens begin with is looked at once
// for all of them. Special tokens have no text, and are not in it. Immutable.
class TokenTrie {
 public:
  explicit TokenTrie(const Tokenizer& tokenizer);

  // A node is one byte after those of the nodes that it hangs from. In preorder: what hangs from
  // node i stands behind it, up to `end`.
  struct Node {
    std::uint32_t end = 0;
    std::uint32_t depth = 0;        // of its text, in bytes: 1 or more
    std::uint32_t first_token = 0;  // the tokens with this text, places in tokens()
    std::uint16_t n_tokens = 0;
    std::uint8_t byte = 0;
  };
  std::span<const Node> nodes() const { return nodes_; }
  std::span<const TokenId> tokens() const { return tokens_; }

  std::size_t vocab_size() const { return texts_.size(); }
  std::size_t max_depth() const { return max_depth_; }
  // The bytes of a token; empty where it has none, or there is no such token.
  std::string_view text(TokenId token) const;

 private:
  void add(std::string_view text, TokenId token, std::vector<std::uint32_t>& path);

  std::string bytes_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> texts_;  // by id: offset, length
  std::vector<Node> nodes_;
  std::vector<TokenId> tokens_;
  std::size_t max_depth_ = 0;
};

}  // namespace stagecraft
