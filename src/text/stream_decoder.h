#pragma once

#include <span>
#include <string>

#include "base/token.h"
#include "text/pipeline/decoder.h"
#include "text/tokenizer.h"

namespace stagecraft {

// Ids to text while they are being generated. All that push() and finish() return, one after the
// other, is decode() of all ids, with what is no UTF-8 replaced by U+FFFD (Unicode 15, table 3-8:
// one for each maximal part of a character). Each token costs the same, however long the text is.
class StreamDecoder {
 public:
  // `tokenizer` must outlive the decoder. `context`: ids that stand before the ones to come, mostly
  // the prompt; their text is not returned, but a space that would be dropped at the beginning of a
  // text is kept after them. A character that begins in the context and ends later is returned.
  explicit StreamDecoder(const Tokenizer& tokenizer, std::span<const TokenId> context = {});

  // The text that is certain now: whole characters only, often empty within one. Special tokens are
  // text here as they are in decode(); whoever does not want to see them does not push them. An id
  // that no token has gives nothing: models have more rows than their tokenizer has tokens.
  std::string push(TokenId id);

  // The rest, once no token comes any more: half a character becomes U+FFFD.
  std::string finish();

 private:
  std::string whole_characters(bool at_end);

  const Tokenizer* tokenizer_;
  Decoding decoding_;
  std::string bytes_;  // certain, but perhaps within a character
};

}  // namespace stagecraft
