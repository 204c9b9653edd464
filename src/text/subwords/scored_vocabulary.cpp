#include "text/subwords/scored_vocabulary.h"

namespace stagecraft {

Vocabulary ScoredVocabulary::vocabulary() const {
  std::vector<std::string_view> texts;
  texts.reserve(pieces.size());
  for (const VocabularyToken& piece : pieces) texts.push_back(piece.text);
  return Vocabulary::of(texts, file + ": pieces");
}

std::vector<std::pair<std::string_view, TokenId>> ScoredVocabulary::user_defined() const {
  std::vector<std::pair<std::string_view, TokenId>> texts;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (pieces[i].kind == TokenKind::UserDefined) {
      texts.emplace_back(pieces[i].text, static_cast<TokenId>(i));
    }
  }
  return texts;
}

}  // namespace stagecraft
