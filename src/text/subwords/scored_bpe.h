#pragma once

#include <string_view>
#include <vector>

#include "text/formats/sentencepiece_model.h"
#include "text/subwords/byte_tokens.h"
#include "text/subwords/byte_trie.h"
#include "text/subwords/subword_model.h"

namespace stagecraft {

// Byte-pair encoding as sentencepiece runs it (src/bpe_model.cc): of all neighbours that together
// are a piece the two are merged whose piece has the best score, of equal ones the leftmost. There
// is no list of merges. Pieces that a user has defined are found first and stay whole; one that is
// unused is taken apart again into the two that it was made of.
class ScoredBpe : public SubwordModel {
 public:
  explicit ScoredBpe(const SentencepieceModel& model);

  void encode(std::string_view piece, std::vector<TokenId>& ids) const override;
  std::string_view name() const override { return "BPE"; }
  const Vocabulary& vocabulary() const override { return vocabulary_; }
  std::optional<TokenId> unknown_id() const override { return unknown_id_; }

 private:
  struct Symbol {
    std::size_t begin;
    std::size_t size;  // 0 once it has become part of the one on its left
    std::int32_t previous;
    std::int32_t next;  // -1 at the ends
    bool frozen;
  };
  struct Candidate {
    float score;
    std::int32_t left;
    std::int32_t right;
    std::size_t size;
    // std's heap has the largest on top: the best score, of equal ones the leftmost.
    bool operator<(const Candidate& other) const {
      return score != other.score ? score < other.score : left > other.left;
    }
  };
  class Splits;

  std::vector<Symbol> characters(std::string_view piece) const;
  void merge(std::string_view piece, std::vector<Symbol>& symbols, Splits& splits) const;
  // The piece that text may become.
  std::optional<TokenId> find(std::string_view text) const;

  Vocabulary vocabulary_;
  std::vector<TokenKind> kinds_;  // by id
  std::vector<float> scores_;
  std::size_t longest_ = 0;  // of the pieces, in bytes
  ByteTrie user_defined_;
  ByteTokens byte_tokens_;
  TokenId unknown_id_;
  bool byte_fallback_;
};

}  // namespace stagecraft
