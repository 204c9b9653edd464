#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"

namespace stagecraft {

// A text cut into pieces, in order. What lies between pieces has been dropped.
struct Pieces {
  struct Piece {
    std::size_t begin;
    std::size_t end;  // in bytes of `text`; never empty
    bool at_start;    // does it begin where the input begins
  };
  std::string text;
  std::vector<Piece> pieces;
};

// Cuts text into the pieces that the subword model sees one by one: words, numbers, blanks.
class PreTokenizer {
 public:
  // The "pre_tokenizer" of a tokenizer.json, or one in a Sequence. Throws Error naming the type
  // where it is not supported.
  static std::unique_ptr<const PreTokenizer> read(const JsonNode& node);

  virtual ~PreTokenizer() = default;

  // Cuts each piece further, by itself, and may rewrite it.
  virtual void apply(Pieces& pieces) const = 0;

  // How many bytes may come out for each that goes in.
  virtual double growth() const { return 1; }
};

}  // namespace stagecraft
