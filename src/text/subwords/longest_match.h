#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "text/subwords/byte_tokens.h"
#include "text/subwords/byte_trie.h"
#include "text/subwords/subword_model.h"

namespace stagecraft {

// For a vocabulary without scores or merges (a .flm file): repeatedly takes the longest token that
// the rest of the text begins with. If no token matches, a character becomes its byte tokens
// (<0x0A>) if the vocabulary has them, or else the unknown token, or nothing if there is none. Only
// this engine uses such a model in a tokenizer.json: {"type": "LongestMatch", "unk_token",
// "vocab"}.
class LongestMatch : public SubwordModel {
 public:
  explicit LongestMatch(const JsonNode& model);

  void encode(std::string_view piece, std::vector<TokenId>& ids) const override;
  std::string_view name() const override { return "longest match (no scores, no merges)"; }
  const Vocabulary& vocabulary() const override { return vocabulary_; }
  std::optional<TokenId> unknown_id() const override { return unknown_id_; }

 private:
  Vocabulary vocabulary_;
  ByteTrie trie_;  // the tokens that may match
  ByteTokens byte_tokens_;
  std::optional<TokenId> unknown_id_;
};

}  // namespace stagecraft
