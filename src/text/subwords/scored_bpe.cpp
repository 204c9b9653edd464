#include "text/subwords/scored_bpe.h"

#include <algorithm>
#include <unordered_map>

#include "text/unicode.h"

namespace stagecraft {
namespace {

// Whether text may become a token of this kind. Tokens of other kinds do not stand for text.
bool spells(TokenKind kind) {
  return kind == TokenKind::Normal || kind == TokenKind::UserDefined || kind == TokenKind::Unused;
}

}  // namespace

// Per unused piece: the size of its left part in the last merge that formed it.
class ScoredBpe::Splits {
 public:
  void remember(TokenId piece, std::size_t left_size) { left_sizes_[piece] = left_size; }
  std::optional<std::size_t> find(TokenId piece) const {
    const auto found = left_sizes_.find(piece);
    return found == left_sizes_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  std::unordered_map<TokenId, std::size_t> left_sizes_;
};

ScoredBpe::ScoredBpe(const ScoredVocabulary& model)
    : vocabulary_(model.vocabulary()),
      scores_(model.scores),
      user_defined_(model.user_defined()),
      byte_tokens_(vocabulary_),
      unknown_id_(model.unknown_id),
      byte_fallback_(model.byte_fallback) {
  kinds_.reserve(model.pieces.size());
  for (const VocabularyToken& piece : model.pieces) {
    kinds_.push_back(piece.kind);
    if (spells(piece.kind)) longest_ = std::max(longest_, piece.text.size());
  }
}

std::optional<TokenId> ScoredBpe::find(std::string_view text) const {
  if (text.size() > longest_) return std::nullopt;
  const auto id = vocabulary_.find(text);
  if (!id) return std::nullopt;
  return spells(kinds_[static_cast<std::size_t>(*id)]) ? id : std::nullopt;
}

std::vector<ScoredBpe::Symbol> ScoredBpe::characters(std::string_view piece) const {
  std::vector<Symbol> symbols;
  symbols.reserve(piece.size());
  for (std::size_t begin = 0; begin < piece.size();) {
    const std::string_view rest = piece.substr(begin);
    const std::size_t whole = user_defined_.longest_prefix(rest);
    const std::size_t size = whole > 0 ? whole : first_code_point(rest).length;
    const auto i = static_cast<std::int32_t>(symbols.size());
    begin += size;
    symbols.push_back({begin - size, size, i - 1, begin < piece.size() ? i + 1 : -1, whole > 0});
  }
  return symbols;
}

void ScoredBpe::merge(std::string_view piece, std::vector<Symbol>& symbols, Splits& splits) const {
  const auto at = [&](std::int32_t i) -> Symbol& { return symbols[static_cast<std::size_t>(i)]; };
  std::vector<Candidate> heap;
  const auto propose = [&](std::int32_t left, std::int32_t right) {
    if (left < 0 || right < 0 || at(left).frozen || at(right).frozen) return;
    const std::size_t size = at(left).size + at(right).size;
    const auto id = find(piece.substr(at(left).begin, size));
    if (!id) return;
    heap.push_back({scores_[static_cast<std::size_t>(*id)], left, right, size});
    std::push_heap(heap.begin(), heap.end());
    if (kinds_[static_cast<std::size_t>(*id)] == TokenKind::Unused)
      splits.remember(*id, at(left).size);
  };
  for (std::int32_t i = 1; i < static_cast<std::int32_t>(symbols.size()); ++i) propose(i - 1, i);

  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end());
    const Candidate best = heap.back();
    heap.pop_back();
    Symbol& left = at(best.left);
    Symbol& right = at(best.right);
    // One of them may have been merged with another symbol since.
    if (left.size == 0 || right.size == 0 || left.size + right.size != best.size) continue;
    left.size = best.size;
    left.next = right.next;
    if (left.next >= 0) at(left.next).previous = best.left;
    right.size = 0;
    propose(left.previous, best.left);
    propose(best.left, left.next);
  }
}

void ScoredBpe::encode(std::string_view piece, std::vector<TokenId>& ids) const {
  if (piece.empty()) return;
  check_size(piece);
  std::vector<Symbol> symbols = characters(piece);
  Splits splits;
  merge(piece, symbols, splits);

  bool after_unknown = false;
  std::vector<std::string_view> parts;  // of an unused piece; the next one is last
  for (std::int32_t i = 0; i >= 0; i = symbols[static_cast<std::size_t>(i)].next) {
    const Symbol& symbol = symbols[static_cast<std::size_t>(i)];
    parts.push_back(piece.substr(symbol.begin, symbol.size));
    while (!parts.empty()) {
      const std::string_view part = parts.back();
      parts.pop_back();
      auto id = find(part);
      if (id && kinds_[static_cast<std::size_t>(*id)] == TokenKind::Unused) {
        if (const auto left = splits.find(*id)) {
          parts.push_back(part.substr(*left));
          parts.push_back(part.substr(0, *left));
          continue;
        }
        id.reset();  // a single character cannot be split
      }
      if (id) {
        ids.push_back(*id);
      } else if (byte_fallback_) {
        byte_tokens_.spell(part, [&](TokenId byte) { ids.push_back(byte); });
      } else if (!after_unknown) {  // consecutive unknown characters are one token
        ids.push_back(unknown_id_);
      }
      after_unknown = !id;
    }
  }
}

}  // namespace stagecraft
