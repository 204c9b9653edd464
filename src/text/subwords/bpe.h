#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/subwords/byte_tokens.h"
#include "text/subwords/pair_table.h"
#include "text/subwords/subword_model.h"

namespace stagecraft {

// Byte-pair encoding (Sennrich, Haddow and Birch 2016) as in Hugging Face tokenizers. A piece is
// first split into characters. Then the adjacent pair with the lowest merge rank is merged, until
// no pair with a rank is left. O(n log n) for a piece of n characters.
class Bpe : public SubwordModel {
 public:
  // Throws Error naming the field if a merge uses tokens that do not exist, or if an unsupported
  // option would change the result (dropout, continuing_subword_prefix, end_of_word_suffix).
  explicit Bpe(const JsonNode& model);

  void encode(std::string_view piece, std::vector<TokenId>& ids) const override;
  std::string_view name() const override { return "BPE"; }
  const Vocabulary& vocabulary() const override { return vocabulary_; }
  std::optional<TokenId> unknown_id() const override { return unknown_id_; }

 private:
  // A token and its neighbours in the piece that is being merged.
  struct Symbol {
    TokenId id;  // kMerged after it became part of its left neighbour
    std::int32_t previous;
    std::int32_t next;  // -1 at the ends
  };
  // The result of merging two adjacent tokens.
  struct Merge {
    std::uint32_t rank;  // 0 was learnt first
    TokenId product;
  };
  // A pair that could be merged: the symbol at `position` and the one after it.
  struct Candidate {
    std::uint32_t rank;
    std::int32_t position;
    TokenId product;
    // std's heap has the largest element on top: the lowest rank, and with equal ranks the
    // leftmost.
    bool operator<(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : position > other.position;
    }
  };

  void read_merges(const JsonNode& merges);
  void add_merge(const JsonNode& node, std::string_view left, std::string_view right,
                 std::size_t rank);
  std::vector<Symbol> characters(std::string_view piece) const;
  TokenId unknown(std::string_view character) const;
  void merge(std::vector<Symbol>& symbols) const;

  Vocabulary vocabulary_;
  PairTable<Merge> merges_;                   // if a pair occurs twice, the later one counts
  std::string unknown_where_;                 // for error messages
  std::optional<std::string> unknown_token_;  // as the file spells it
  std::optional<TokenId> unknown_id_;
  ByteTokens byte_tokens_;
  bool fuse_unknown_ = false;
  bool byte_fallback_ = false;
  bool ignore_merges_ = false;
};

}  // namespace stagecraft
