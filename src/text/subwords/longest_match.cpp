#include "text/subwords/longest_match.h"

#include <algorithm>

#include "base/error.h"
#include "text/unicode.h"

namespace stagecraft {

LongestMatch::LongestMatch(const JsonNode& model) {
  vocabulary_ = Vocabulary::read(model.at("vocab"));
  if (const auto token = model.find("unk_token")) unknown_id_ = vocabulary_.find(token->string());
  for (std::size_t byte = 0; byte < byte_tokens_.size(); ++byte) {
    byte_tokens_[byte] = vocabulary_.find(fmt::format("<0x{:02X}>", byte));
  }
  for (std::size_t i = 0; i < vocabulary_.end_id(); ++i) {
    const auto id = static_cast<TokenId>(i);
    const std::string_view text = vocabulary_.text(id);
    // Text that spells "<0x0A>" is six characters and no newline.
    if (text.empty() || id == unknown_id_ ||
        std::ranges::find(byte_tokens_, id) != byte_tokens_.end())
      continue;
    if (text.size() > kMaxTokenBytes) {
      model.refuse(fmt::format("tokens of at most {} bytes", kMaxTokenBytes),
                   fmt::format("one of {}", text.size()));
    }
    sorted_.emplace_back(text, id);
  }
  std::ranges::sort(sorted_);
}

void LongestMatch::encode(std::string_view piece, std::vector<TokenId>& ids) const {
  while (!piece.empty()) {
    // Those that begin with the first `length` bytes of the piece stand together.
    auto first = sorted_.begin();
    auto last = sorted_.end();
    auto longest = sorted_.end();
    for (std::size_t length = 1; length <= piece.size() && first != last; ++length) {
      const std::string_view start = piece.substr(0, length);
      const auto cut = [&](const auto& entry) { return entry.first.substr(0, length); };
      first = std::ranges::lower_bound(first, last, start, {}, cut);
      last = std::ranges::upper_bound(first, last, start, {}, cut);
      if (first != last && first->first.size() == length) longest = first;
    }
    if (longest != sorted_.end()) {
      ids.push_back(longest->second);
      piece.remove_prefix(longest->first.size());
      continue;
    }
    const std::string_view character = piece.substr(0, first_code_point(piece).length);
    const auto byte_token = [&](char byte) {
      return byte_tokens_[static_cast<unsigned char>(byte)];
    };
    if (std::ranges::all_of(character, [&](char c) { return byte_token(c).has_value(); })) {
      for (const char byte : character) ids.push_back(*byte_token(byte));
    } else if (unknown_id_) {
      ids.push_back(*unknown_id_);
    }
    piece.remove_prefix(character.size());
  }
}

}  // namespace stagecraft
