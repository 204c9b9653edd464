#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/token.h"
#include "text/vocabulary.h"

namespace stagecraft {

// Tokens with scores, as in a sentencepiece model. The texts are views.
struct ScoredVocabulary {
  std::string file;                     // for errors
  std::vector<VocabularyToken> pieces;  // by id; no text is empty
  std::vector<float> scores;            // one per piece, finite
  bool byte_fallback = false;           // true: there is a piece for every byte
  TokenId unknown_id = 0;               // of the only piece of type Unknown

  // Throws Error if two pieces have the same text.
  Vocabulary vocabulary() const;
  // The user-defined pieces with their ids. They are tokens wherever they occur in a text.
  std::vector<std::pair<std::string_view, TokenId>> user_defined() const;
};

}  // namespace stagecraft
