#include "text/vocabulary.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "base/error.h"

namespace stagecraft {
namespace {

// Room for the gaps that real vocabularies have.
std::size_t largest_end_id(std::size_t n_entries) { return 2 * n_entries + 65536; }

}  // namespace

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
  vocabulary.texts_.resize(static_cast<std::size_t>(end_id));
  vocabulary.arena_.reserve(n_bytes);
  vocabulary.slots_.assign(std::bit_ceil(2 * object.size() + 2), -1);

  for (const JsonNode entry : object.members()) {
    const auto id = static_cast<TokenId>(entry.integer());
    const std::string_view text = entry.key();
    TokenId& slot = vocabulary.slots_[vocabulary.slot_of(text)];
    if (slot >= 0) entry.refuse("each token once", "it twice");
    Text& place = vocabulary.texts_[static_cast<std::size_t>(id)];
    if (place.used) {
      entry.refuse("an id of its own",
                   fmt::format("{}, which '{}' has too", id, printable(vocabulary.text(id), 40)));
    }
    place = {static_cast<std::uint32_t>(vocabulary.arena_.size()),
             static_cast<std::uint32_t>(text.size()), true};
    vocabulary.arena_ += text;
    slot = id;
    ++vocabulary.n_tokens_;
  }
  return vocabulary;
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
