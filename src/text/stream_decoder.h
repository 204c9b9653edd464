#pragma once

#include <span>
#include <string>

#include "base/token.h"
#include "text/pipeline/decoder.h"
#include "text/tokenizer.h"

namespace stagecraft {

// Ids to text during generation. The concatenated results of push() and finish() equal decode() of
// all ids, with invalid UTF-8 replaced by U+FFFD (Unicode 15, table 3-8: one per maximal subpart of
// a broken sequence). The time per token does not depend on the length of the text.
class StreamDecoder {
 public:
  // `tokenizer` must outlive the decoder. `context`: the ids before the first pushed one, usually
  // the prompt. Their text is not returned. After a context, a space is kept that would be dropped
  // at the beginning of a text. A character that begins in the context and ends later is returned.
  explicit StreamDecoder(const Tokenizer& tokenizer, std::span<const TokenId> context = {});

  // The text that is final now: only whole characters, so the result is often empty. Special tokens
  // give text as in decode(); a caller who wants to hide them does not push them. An id without a
  // token gives nothing: many models have more embedding rows than their tokenizer has tokens.
  std::string push(TokenId id);

  // The rest, after the last token: half a character becomes U+FFFD.
  std::string finish();

 private:
  std::string whole_characters(bool at_end);

  const Tokenizer* tokenizer_;
  Decoding decoding_;
  std::string bytes_;  // final, but perhaps an incomplete character at its end
};

}  // namespace stagecraft
