#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/formats/sentencepiece_model.h"
#include "text/subwords/byte_tokens.h"
#include "text/subwords/byte_trie.h"
#include "text/subwords/subword_model.h"

namespace stagecraft {

// A unigram language model (Kudo 2018): each token has a score, its log probability, and a piece is
// spelt by the tokens whose scores have the largest sum. Found by Viterbi, from left to right; of
// equal sums the one found first stays. A character that no token spells is unknown, for less than
// any token costs.
class Unigram : public SubwordModel {
 public:
  // As Hugging Face tokenizers runs it, in double. Throws Error naming the field.
  explicit Unigram(const JsonNode& model);
  // As sentencepiece does, in float, which decides between ways that are almost equal; what it does
  // with the pieces that are not normal follows their type.
  explicit Unigram(const SentencepieceModel& model);

  void encode(std::string_view piece, std::vector<TokenId>& ids) const override;
  void encode_without(const Forbidden& forbidden, std::string_view piece,
                      std::vector<TokenId>& ids) const override;
  std::string_view name() const override { return "Unigram"; }
  const Vocabulary& vocabulary() const override { return vocabulary_; }
  std::optional<TokenId> unknown_id() const override { return unknown_id_; }

 private:
  // The end of the best way to spell the piece up to here.
  struct Node {
    double score = 0;
    std::int32_t begin = -1;  // of its last token; -1: no way yet
    TokenId id = 0;
  };
  static constexpr TokenId kUnknown = -1;

  std::vector<Node> best_ways(const Forbidden& forbidden, std::string_view piece) const;
  void append_unknown(const Forbidden& forbidden, std::string_view text,
                      std::vector<TokenId>& ids) const;

  Vocabulary vocabulary_;
  ByteTrie trie_;
  std::vector<double> scores_;  // by id
  double unknown_score_ = 0;
  std::string where_;  // for errors
  std::optional<TokenId> unknown_id_;
  ByteTokens byte_tokens_;
  bool byte_fallback_ = false;
  bool in_float_ = false;
  bool unknown_may_be_token_ = false;  // unknown characters in a row may be, together, a token
};

}  // namespace stagecraft
