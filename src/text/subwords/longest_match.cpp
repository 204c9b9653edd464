#include "text/subwords/longest_match.h"

#include <fmt/format.h>

#include "text/unicode.h"

namespace stagecraft {

LongestMatch::LongestMatch(const JsonNode& model)
    : vocabulary_(Vocabulary::read(model.at("vocab"))), byte_tokens_(vocabulary_) {
  if (const auto token = model.find("unk_token")) unknown_id_ = vocabulary_.find(token->string());
  std::vector<std::pair<std::string_view, TokenId>> texts;
  for (std::size_t i = 0; i < vocabulary_.end_id(); ++i) {
    const auto id = static_cast<TokenId>(i);
    const std::string_view text = vocabulary_.text(id);
    // The text "<0x0A>" is six characters, not a newline.
    if (text.empty() || id == unknown_id_ || byte_of_token(text)) continue;
    if (text.size() > kMaxTokenBytes) {
      model.refuse(fmt::format("tokens of at most {} bytes", kMaxTokenBytes),
                   fmt::format("one of {}", text.size()));
    }
    texts.emplace_back(text, id);
  }
  trie_ = ByteTrie(std::move(texts));
}

void LongestMatch::encode(std::string_view piece, std::vector<TokenId>& ids) const {
  const auto append = [&](TokenId id) { ids.push_back(id); };
  while (!piece.empty()) {
    std::size_t length = 0;
    TokenId longest = 0;
    trie_.prefixes(piece, [&](std::size_t n, TokenId id) {
      length = n;
      longest = id;
    });
    if (length > 0) {
      append(longest);
    } else {
      length = first_code_point(piece).length;
      const bool spelt = byte_tokens_.spell(piece.substr(0, length), append);
      if (!spelt && unknown_id_) append(*unknown_id_);
    }
    piece.remove_prefix(length);
  }
}

}  // namespace stagecraft
