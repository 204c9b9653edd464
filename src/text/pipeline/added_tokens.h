#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/json.h"
#include "base/token.h"
#include "text/marked_text.h"
#include "text/pipeline/normalizer.h"
#include "text/vocabulary.h"

namespace stagecraft {

// A token that is searched for in the text itself, before the model sees it.
struct AddedToken {
  std::string content;
  std::string pattern;  // the text to search for: the content, normalized if `normalized`
  TokenId id = 0;
  bool single_word = false;  // only if no word character is next to it
  bool lstrip = false;       // also takes the blanks on its left
  bool rstrip = false;
  bool normalized = false;  // searched for in the normalized text
  bool special = false;     // marks structure (<|im_start|>), is not text
};

// Finds the longest string of a set at a position in a text.
class LiteralMatcher {
 public:
  LiteralMatcher() = default;
  // `literals`: distinct, non-empty strings, each with the value of a match.
  explicit LiteralMatcher(std::vector<std::pair<std::string, std::size_t>> literals);

  struct Found {
    std::size_t begin;
    std::size_t end;
    std::size_t value;
  };
  // The leftmost match that begins at `from` or later; of several that begin there, the longest.
  std::optional<Found> find(std::string_view text, std::size_t from) const;

 private:
  std::vector<std::pair<std::string, std::size_t>> literals_;  // sorted by their bytes
  std::array<std::pair<std::size_t, std::size_t>, 256> by_first_byte_ = {};  // ranges of literals_
};

// The "added_tokens" of a tokenizer.json, extracted exactly as Hugging Face tokenizers does.
class AddedTokens {
 public:
  AddedTokens() = default;
  // `normalizer` may be null. Throws Error if an id contradicts the model's vocabulary or another
  // added token, or is far beyond both.
  AddedTokens(const JsonNode& array, const Vocabulary& vocabulary, const Normalizer* normalizer);

  // A part of a text: an added token, or text for the model.
  struct Segment {
    std::size_t begin;
    std::size_t end;
    std::optional<TokenId> id;
  };
  enum class Kind { kRaw, kNormalized };
  // The segments of `text` for the tokens of one kind, in order. If `parse_special` is false, the
  // text of a special token stays text. It also stays text if it overlaps one of the spans `typed`.
  std::vector<Segment> split(std::string_view text, Kind kind, bool parse_special,
                             std::span<const TextSpan> typed = {}) const;

  const AddedToken* find(TokenId id) const;
  std::optional<TokenId> find(std::string_view content) const;
  std::size_t end_id() const { return end_id_; }  // the largest id + 1

 private:
  void add(const JsonNode& node, const Vocabulary& vocabulary, const Normalizer* normalizer,
           std::size_t end_id);

  std::vector<AddedToken> tokens_;
  std::unordered_map<TokenId, std::size_t> by_id_;  // indices in tokens_
  std::unordered_map<std::string, std::size_t> by_content_;
  LiteralMatcher raw_;
  LiteralMatcher normalized_;
  std::size_t end_id_ = 0;
};

}  // namespace stagecraft
