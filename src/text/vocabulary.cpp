#include "text/vocabulary.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "base/error.h"

namespace stagecraft {

bool VocabularyToken::is_added() const {
  return kind == TokenKind::Unknown || kind == TokenKind::Control || kind == TokenKind::UserDefined;
}

Vocabulary Vocabulary::read(const JsonNode& object) {
  Vocabulary vocabulary;
  std::int64_t end_id = 0;
  std::size_t n_bytes = 0;
  const auto limit = static_cast<std::int64_t>(largest_end_id(object.size()));
  for (const JsonNode entry : object.members()) {
    const std::int64_t id = entry.integer();
    if (id < 0 || id >= limit) {
      entry.refuse(fmt::format("an id from 0 to {} (for {} entries)", limit - 1, object.size()));
    }
    end_id = std::max(end_id, id + 1);
    n_bytes += entry.key().size();
  }
  vocabulary.reserve(object.size(), static_cast<std::size_t>(end_id), n_bytes);

  for (const JsonNode entry : object.members()) {
    const auto id = static_cast<TokenId>(entry.integer());
    if (vocabulary.contains(id)) {
      entry.refuse("a unique id",
                   fmt::format("{}, which '{}' also has", id, printable(vocabulary.text(id), 40)));
    }
    vocabulary.add(entry.key(), id);
  }
  return vocabulary;
}

Vocabulary Vocabulary::of(std::span<const std::string_view> texts, const std::string& where) {
  Vocabulary vocabulary;
  std::size_t n_bytes = 0;
  for (const std::string_view text : texts) n_bytes += text.size();
  vocabulary.reserve(texts.size(), texts.size(), n_bytes);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (vocabulary.add(texts[i], static_cast<TokenId>(i))) continue;
    throw Error("{}[{}]: expected each token once, found '{}', which is also token {}", where, i,
                printable(texts[i], 40), *vocabulary.find(texts[i]));
  }
  return vocabulary;
}

void Vocabulary::reserve(std::size_t n_tokens, std::size_t end_id, std::size_t n_bytes) {
  texts_.resize(end_id);
  arena_.reserve(n_bytes);
  slots_.assign(std::bit_ceil(2 * n_tokens + 2), -1);
}

bool Vocabulary::add(std::string_view text, TokenId id) {
  TokenId& slot = slots_[slot_of(text)];
  if (slot >= 0) return false;
  texts_[static_cast<std::size_t>(id)] = {static_cast<std::uint32_t>(arena_.size()),
                                          static_cast<std::uint32_t>(text.size()), true};
  arena_ += text;
  slot = id;
  return true;
}

std::size_t Vocabulary::slot_of(std::string_view text) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = std::hash<std::string_view>{}(text)&mask;
  while (slots_[slot] >= 0 && this->text(slots_[slot]) != text) slot = (slot + 1) & mask;
  return slot;
}

std::optional<TokenId> Vocabulary::find(std::string_view text) const {
  const TokenId id = slots_[slot_of(text)];
  return id >= 0 ? std::optional(id) : std::nullopt;
}

std::string_view Vocabulary::text(TokenId id) const {
  if (!contains(id)) return {};
  const Text& place = texts_[static_cast<std::size_t>(id)];
  return std::string_view(arena_).substr(place.offset, place.length);
}

bool Vocabulary::contains(TokenId id) const {
  return id >= 0 && static_cast<std::size_t>(id) < texts_.size() &&
         texts_[static_cast<std::size_t>(id)].used;
}

}  // namespace stagecraft
