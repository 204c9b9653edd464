#include "text/subwords/bpe.h"

#include "base/error.h"
#include "text/unicode.h"

namespace stagecraft {
namespace {

constexpr TokenId kMerged = -1;  // a symbol that became part of its neighbour
constexpr TokenId kNone = -1;

// For options that are unset: older files write "", newer ones null.
void require_empty(const JsonNode& model, std::string_view name) {
  const auto option = model.find(name);
  if (option && !option->string().empty()) option->refuse("null or '' (it is not supported)");
}

}  // namespace

Bpe::Bpe(const JsonNode& model) {
  if (const auto dropout = model.find("dropout")) {
    dropout->refuse("null (dropout is for training, and not supported)");
  }
  require_empty(model, "continuing_subword_prefix");
  require_empty(model, "end_of_word_suffix");
  fuse_unknown_ = model.boolean_or("fuse_unk", false);
  byte_fallback_ = model.boolean_or("byte_fallback", false);
  ignore_merges_ = model.boolean_or("ignore_merges", false);

  vocabulary_ = Vocabulary::read(model.at("vocab"));
  read_merges(model.at("merges"));

  if (const auto token = model.find("unk_token")) {
    unknown_where_ = token->where();
    unknown_token_ = token->string();
    unknown_id_ = vocabulary_.find(*unknown_token_);
  }
  byte_tokens_ = ByteTokens(vocabulary_);
}

// Two formats: "left right", for tokens without spaces, and ["left", "right"].
void Bpe::read_merges(const JsonNode& merges) {
  const auto elements = merges.elements();
  merges_.reset(merges.size());
  std::size_t rank = 0;
  for (const JsonNode merge : elements) {
    if (merge.is_string()) {
      const std::string_view pair = merge.string();
      if (pair.starts_with("#version")) continue;  // first line of a merges.txt
      const std::size_t space = pair.find(' ');
      if (space == std::string_view::npos || pair.find(' ', space + 1) != std::string_view::npos) {
        merge.refuse("two tokens separated by a space");
      }
      add_merge(merge, pair.substr(0, space), pair.substr(space + 1), rank++);
    } else {
      if (!merge.is_array() || merge.size() != 2) merge.refuse("a pair of tokens");
      auto element = merge.elements().begin();
      const std::string_view left = (*element).string();
      add_merge(merge, left, (*++element).string(), rank++);
    }
  }
}

void Bpe::add_merge(const JsonNode& node, std::string_view left, std::string_view right,
                    std::size_t rank) {
  const auto id_of = [&](std::string_view token) {
    const auto id = vocabulary_.find(token);
    if (!id) {
      node.refuse("two tokens of model.vocab whose concatenation is also in model.vocab",
                  fmt::format("'{}', which is not in it", printable(token, 40)));
    }
    return *id;
  };
  const TokenId left_id = id_of(left);
  const TokenId right_id = id_of(right);
  const TokenId product = id_of(std::string(left) + std::string(right));
  merges_.set(left_id, right_id, {static_cast<std::uint32_t>(rank), product});
}

void Bpe::encode(std::string_view piece, std::vector<TokenId>& ids) const {
  if (piece.empty()) return;
  check_size(piece);
  if (ignore_merges_) {
    if (const auto id = vocabulary_.find(piece)) {
      ids.push_back(*id);
      return;
    }
  }
  std::vector<Symbol> symbols = characters(piece);
  merge(symbols);
  for (const Symbol& symbol : symbols) {
    if (symbol.id != kMerged) ids.push_back(symbol.id);
  }
}

// The same order as in Hugging Face tokenizers: an unknown character waits for the next known one,
// so that fuse_unk can join a run. Byte tokens for a character do not end the wait.
std::vector<Bpe::Symbol> Bpe::characters(std::string_view piece) const {
  std::vector<Symbol> symbols;
  symbols.reserve(piece.size());
  const auto append = [&](TokenId id) { symbols.push_back({id, 0, 0}); };
  TokenId waiting = kNone;
  while (!piece.empty()) {
    const std::string_view character = piece.substr(0, first_code_point(piece).length);
    piece.remove_prefix(character.size());
    if (const auto id = vocabulary_.find(character)) {
      if (waiting != kNone) append(waiting);
      waiting = kNone;
      append(*id);
      continue;
    }
    const bool is_spelt = byte_fallback_ && byte_tokens_.spell(character, append);
    if (!is_spelt && unknown_token_) {
      if (waiting != kNone && !fuse_unknown_) append(waiting);
      waiting = unknown(character);
    }
  }
  if (waiting != kNone) append(waiting);
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    symbols[i].previous = static_cast<std::int32_t>(i) - 1;
    symbols[i].next = i + 1 < symbols.size() ? static_cast<std::int32_t>(i + 1) : -1;
  }
  return symbols;
}

TokenId Bpe::unknown(std::string_view character) const {
  if (unknown_id_) return *unknown_id_;
  throw Error("{}: expected a token of model.vocab as the unknown token for '{}', found '{}'",
              unknown_where_, printable(character), printable(*unknown_token_));
}

void Bpe::merge(std::vector<Symbol>& symbols) const {
  const auto at = [&](std::int32_t i) -> Symbol& { return symbols[static_cast<std::size_t>(i)]; };
  std::vector<Candidate> heap;
  heap.reserve(symbols.size());
  for (std::int32_t i = 0; i + 1 < static_cast<std::int32_t>(symbols.size()); ++i) {
    if (const auto* merge = merges_.find(at(i).id, at(i + 1).id)) {
      heap.push_back({merge->rank, i, merge->product});
    }
  }
  std::make_heap(heap.begin(), heap.end());
  const auto propose = [&](std::int32_t left, std::int32_t right) {
    const auto* merge = merges_.find(at(left).id, at(right).id);
    if (merge == nullptr) return;
    heap.push_back({merge->rank, left, merge->product});
    std::push_heap(heap.begin(), heap.end());
  };

  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end());
    const Candidate best = heap.back();
    heap.pop_back();

    // Its symbols may have been merged with others since. It is valid if the two current symbols
    // merge into the same product.
    Symbol& left = at(best.position);
    if (left.id == kMerged || left.next < 0) continue;
    Symbol& right = at(left.next);
    const auto* merge = merges_.find(left.id, right.id);
    if (merge == nullptr || merge->product != best.product) continue;

    left.id = best.product;
    left.next = right.next;
    right.id = kMerged;
    if (left.next >= 0) at(left.next).previous = best.position;

    if (left.previous >= 0) propose(left.previous, best.position);
    if (left.next >= 0) propose(best.position, left.next);
  }
}

}  // namespace stagecraft
