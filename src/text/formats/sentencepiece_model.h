#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/token.h"
#include "text/formats/description_parts.h"
#include "text/vocabulary.h"

namespace stagecraft {

// What a sentencepiece tokenizer.model says: a ModelProto of google/sentencepiece,
// src/sentencepiece_model.proto. Texts are views into the bytes that it was read from.
struct SentencepieceModel {
  enum class Algorithm { Unigram = 1, Bpe = 2 };

  std::string file;                     // for errors
  std::vector<VocabularyToken> pieces;  // by id; texts are not empty, and each comes once
  std::vector<float> scores;            // one each, finite
  Algorithm algorithm = Algorithm::Unigram;
  bool byte_fallback = false;  // if so there is a piece for every byte
  TokenId unknown_id = 0;      // of the one piece of type Unknown
  std::optional<TokenId> bos_id, eos_id;

  std::string_view charsmap;  // see charsmap.h; empty: characters stay what they are
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;

  // Throws Error "FILE: WAY: expected ..., found ..." for what is malformed and, by its name, what
  // is not supported: models of words or characters, a space as suffix or not escaped, a
  // denormalizer.
  static SentencepieceModel read(std::string_view bytes, std::string file);

  Vocabulary vocabulary() const;
  // The pieces that are tokens of their own wherever a text has them, with their ids.
  std::vector<std::pair<std::string_view, TokenId>> user_defined() const;
};

}  // namespace stagecraft
