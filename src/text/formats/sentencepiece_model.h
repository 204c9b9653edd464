#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/token.h"
#include "text/formats/description_parts.h"
#include "text/vocabulary.h"

namespace stagecraft {

// The content of a sentencepiece tokenizer.model: a ModelProto of google/sentencepiece,
// src/sentencepiece_model.proto. Texts are views into the bytes from which it was read.
struct SentencepieceModel {
  enum class Algorithm { Unigram = 1, Bpe = 2 };

  std::string file;                     // for errors
  std::vector<VocabularyToken> pieces;  // by id; no text is empty
  std::vector<float> scores;            // one per piece, finite
  Algorithm algorithm = Algorithm::Unigram;
  bool byte_fallback = false;  // true: there is a piece for every byte
  TokenId unknown_id = 0;      // of the only piece of type Unknown
  std::optional<TokenId> bos_id, eos_id;

  std::string_view charsmap;  // see charsmap.h; empty: characters are not replaced
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;

  // Throws Error "FILE: PLACE: expected ..., found ..." if the file is malformed or has an
  // unsupported feature, which the error names: models of words or characters, a space as suffix or
  // not escaped, a denormalizer.
  static SentencepieceModel read(std::string_view bytes, std::string file);

  // Throws Error if two pieces have the same text.
  Vocabulary vocabulary() const;
  // The user-defined pieces with their ids. They are tokens wherever they occur in a text.
  std::vector<std::pair<std::string_view, TokenId>> user_defined() const;
};

}  // namespace stagecraft
