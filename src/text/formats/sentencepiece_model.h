#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/token.h"
#include "text/subwords/scored_vocabulary.h"

namespace stagecraft {

// The content of a sentencepiece tokenizer.model: a ModelProto of google/sentencepiece,
// src/sentencepiece_model.proto. Texts are views into the bytes from which it was read.
struct SentencepieceModel : ScoredVocabulary {
  enum class Algorithm { Unigram = 1, Bpe = 2 };

  Algorithm algorithm = Algorithm::Unigram;
  std::optional<TokenId> bos_id, eos_id;

  std::string_view charsmap;  // see charsmap.h; empty: characters are not replaced
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;

  // Throws Error "FILE: PLACE: expected ..., found ..." if the file is malformed or has an
  // unsupported feature, which the error names: models of words or characters, a space as suffix or
  // not escaped, a denormalizer.
  static SentencepieceModel read(std::string_view bytes, std::string file);
};

}  // namespace stagecraft
