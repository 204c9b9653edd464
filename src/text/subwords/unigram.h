#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/subwords/byte_tokens.h"
#include "text/subwords/byte_trie.h"
#include "text/subwords/scored_vocabulary.h"
#include "text/subwords/subword_model.h"

namespace stagecraft {

// A unigram language model (Kudo 2018): each token has a score, its log probability, and a piece
// becomes the tokens with the largest sum of scores. The Viterbi algorithm finds them from left to
// right; of equal sums, the first one found stays. A character that no token spells is unknown: its
// score is lower than that of every token.
class Unigram : public SubwordModel {
 public:
  // As in Hugging Face tokenizers, with sums in double. Throws Error naming the field.
  explicit Unigram(const JsonNode& model);
  // As in sentencepiece, with sums in float: rounding decides between almost equal sums. The type
  // of a piece decides whether text may become it.
  explicit Unigram(const ScoredVocabulary& model);

  void encode(std::string_view piece, std::vector<TokenId>& ids) const override;
  void encode_without(const Forbidden& forbidden, std::string_view piece,
                      std::vector<TokenId>& ids) const override;
  std::string_view name() const override { return "Unigram"; }
  const Vocabulary& vocabulary() const override { return vocabulary_; }
  std::optional<TokenId> unknown_id() const override { return unknown_id_; }

 private:
  // The best tokens for the piece up to this byte: their last token, and the sum of their scores.
  struct Node {
    double score = 0;
    std::int32_t begin = -1;  // where the last token begins; -1: not reached
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
  std::string where_;  // for error messages
  std::optional<TokenId> unknown_id_;
  ByteTokens byte_tokens_;
  bool byte_fallback_ = false;
  bool in_float_ = false;
  bool unknown_may_be_token_ = false;  // a run of unknown characters may together be a token
};

}  // namespace stagecraft
