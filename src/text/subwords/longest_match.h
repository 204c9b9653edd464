#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "text/subwords/byte_tokens.h"
#include "text/subwords/byte_trie.h"
#include "text/subwords/subword_model.h"

namespace stagecraft {

// For a vocabulary without scores or merges (a .flm file): from the left, each time the longest
// token that the text goes on with. Where none fits, a character becomes its bytes' tokens (<0x0A>)
// if the vocabulary has them, else the unknown token if there is one, else nothing. No other
// program's tokenizer.json has this model: {"type": "LongestMatch", "unk_token", "vocab"}.
class LongestMatch : public SubwordModel {
 public:
  explicit LongestMatch(const JsonNode& model);

  void encode(std::string_view piece, std::vector<TokenId>& ids) const override;
  std::string_view name() const override { return "longest match (no scores, no merges)"; }
  const Vocabulary& vocabulary() const override { return vocabulary_; }
  std::optional<TokenId> unknown_id() const override { return unknown_id_; }

  // More would make a text of such a token's beginnings slow.
  static constexpr std::size_t kMaxTokenBytes = 1024;

 private:
  Vocabulary vocabulary_;
  ByteTrie trie_;  // what may be matched
  ByteTokens byte_tokens_;
  std::optional<TokenId> unknown_id_;
};

}  // namespace stagecraft
