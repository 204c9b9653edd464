#pragma once

#include <string_view>
#include <vector>

#include "text/subwords/byte_tokens.h"
#include "text/subwords/byte_trie.h"
#include "text/subwords/scored_vocabulary.h"
#include "text/subwords/subword_model.h"

namespace stagecraft {

// Byte-pair encoding as in sentencepiece (src/bpe_model.cc). There is no list of merges: of all
// adjacent pairs whose concatenation is a piece, the pair with the best score is merged; with equal
// scores, the leftmost. User-defined pieces are found first and stay whole. An unused piece is
// split again into the two parts from which it was merged.
class ScoredBpe : public SubwordModel {
 public:
  explicit ScoredBpe(const ScoredVocabulary& model);

  void encode(std::string_view piece, std::vector<TokenId>& ids) const override;
  std::string_view name() const override { return "BPE"; }
  const Vocabulary& vocabulary() const override { return vocabulary_; }
  std::optional<TokenId> unknown_id() const override { return unknown_id_; }

 private:
  struct Symbol {
    std::size_t begin;
    std::size_t size;  // 0 after it became part of its left neighbour
    std::int32_t previous;
    std::int32_t next;  // -1 at the ends
    bool frozen;
  };
  struct Candidate {
    float score;
    std::int32_t left;
    std::int32_t right;
    std::size_t size;
    // std's heap has the largest element on top: the best score, and with equal scores the
    // leftmost.
    bool operator<(const Candidate& other) const {
      return score != other.score ? score < other.score : left > other.left;
    }
  };
  class Splits;

  std::vector<Symbol> characters(std::string_view piece) const;
  void merge(std::string_view piece, std::vector<Symbol>& symbols, Splits& splits) const;
  // The piece with this text, if text may become such a piece.
  std::optional<TokenId> find(std::string_view text) const;

  Vocabulary vocabulary_;
  std::vector<TokenKind> kinds_;  // by id
  std::vector<float> scores_;
  std::size_t longest_ = 0;  // length of the longest piece, in bytes
  ByteTrie user_defined_;
  ByteTokens byte_tokens_;
  TokenId unknown_id_;
  bool byte_fallback_;
};

}  // namespace stagecraft
