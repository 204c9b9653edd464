#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "text/pipeline/growth_limit.h"

namespace stagecraft {

// A text cut into pieces, in order. Text between the pieces is dropped.
struct Pieces {
  struct Piece {
    std::size_t begin;
    std::size_t end;  // in bytes of `text`; never empty
    bool at_start;    // whether it begins where the input begins
  };
  std::string text;
  std::vector<Piece> pieces;
};

// Cuts text into pieces, which the subword model encodes one by one: words, numbers, blanks.
class PreTokenizer {
 public:
  // The "pre_tokenizer" of a tokenizer.json, or an element of a Sequence. Throws Error naming the
  // type if it is not supported.
  static std::unique_ptr<const PreTokenizer> read(const JsonNode& node);

  virtual ~PreTokenizer() = default;

  // Cuts each piece further, independently of the others. May also rewrite it. Throws Error if the
  // result is longer than `limit` allows.
  virtual void apply(Pieces& pieces, const GrowthLimit& limit) const = 0;
};

}  // namespace stagecraft
