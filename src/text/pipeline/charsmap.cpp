#include "text/pipeline/charsmap.h"

#include "base/error.h"
#include "base/utf8.h"

namespace stagecraft {
namespace {

// For a text to replace, and for its replacement. The longest in use (of U+FDFA) has 33 bytes.
constexpr std::size_t kMaxText = 1024;

// A unit of Darts-clone (github.com/s-yata/darts-clone, darts.h, class DoubleArrayUnit).
bool has_leaf(std::uint32_t unit) { return (unit >> 8 & 1) == 1; }
std::uint32_t value_of(std::uint32_t unit) { return unit & 0x7fffffff; }
std::uint32_t label_of(std::uint32_t unit) { return unit & 0x800000ff; }
std::uint32_t offset_of(std::uint32_t unit) { return unit >> 10 << ((unit & 0x200) >> 6); }

bool begins_within_character(std::string_view text) {
  return !text.empty() && utf8_is_continuation(text[0]);
}

}  // namespace

Charsmap::Charsmap(std::string_view blob, std::string where) : where_(std::move(where)) {
  const auto number_at = [&](std::size_t at) {
    std::uint32_t number = 0;
    for (std::size_t i = 4; i-- > 0;) {
      number = number << 8 | static_cast<unsigned char>(blob[at + i]);
    }
    return number;
  };
  constexpr std::size_t kHead = 4;
  if (blob.size() < kHead) {
    throw Error("{}: expected at least {} bytes, found {}", where_, kHead, blob.size());
  }
  const std::uint32_t n_bytes = number_at(0);
  if (n_bytes == 0 || n_bytes % 4 != 0 || n_bytes > blob.size() - kHead) {
    throw Error("{}: expected a trie of 4 to {} bytes, a multiple of 4, found {}", where_,
                blob.size() - kHead, n_bytes);
  }
  units_.resize(n_bytes / 4);
  for (std::size_t i = 0; i < units_.size(); ++i) units_[i] = number_at(kHead + 4 * i);
  texts_ = blob.substr(kHead + n_bytes);
  if (texts_.empty() || texts_.back() != '\0') {
    throw Error("{}: expected texts that end with a zero byte, found {}", where_,
                texts_.empty() ? "none" : "another byte");
  }
  check_utf8(fmt::format("{}: texts", where_), texts_);
  for (std::size_t begin = 0; begin < texts_.size();) {
    const std::size_t end = texts_.find('\0', begin);
    if (end - begin > kMaxText) {
      throw Error("{}: texts: expected at most {} bytes each, found one of {}", where_, kMaxText,
                  end - begin);
    }
    begin = end + 1;
  }
}

void Charsmap::refuse(std::string_view text) const {
  throw Error(
      "{}: expected a trie that leads to replacement texts, found an invalid entry for '{}'",
      where_, printable(text.substr(0, utf8_sequence_length(text)), 40));
}

// Calls found(length, offset of the replacement) for each matching rule, the shortest first, until
// it returns false.
template <class Found>
void Charsmap::walk(std::string_view text, Found found) const {
  std::uint32_t at = offset_of(units_[0]);
  for (std::size_t i = 0; i < text.size(); ++i) {
    at ^= static_cast<unsigned char>(text[i]);
    // A trie may have a loop: without a limit, it would lead to the end of the text each time.
    if (at >= units_.size() || i == kMaxText) return refuse(text);
    const std::uint32_t unit = units_[at];
    if (label_of(unit) != static_cast<unsigned char>(text[i])) return;
    at ^= offset_of(unit);
    if (!has_leaf(unit)) continue;
    if (at >= units_.size()) return refuse(text);
    if (!found(i + 1, value_of(units_[at]))) return;
  }
}

Charsmap::Rule Charsmap::rule_at(std::string_view text, std::size_t length,
                                 std::uint32_t place) const {
  if (place >= texts_.size() || begins_within_character(text.substr(length)) ||
      begins_within_character(std::string_view(texts_).substr(place))) {
    refuse(text);
  }
  return {length, texts_.c_str() + place};
}

std::optional<Charsmap::Rule> Charsmap::longest(std::string_view text) const {
  std::optional<Rule> rule;
  walk(text, [&](std::size_t length, std::uint32_t place) {
    rule = rule_at(text, length, place);
    return true;
  });
  return rule;
}

std::optional<Charsmap::Rule> Charsmap::shortest(std::string_view text) const {
  std::optional<Rule> rule;
  walk(text, [&](std::size_t length, std::uint32_t place) {
    rule = rule_at(text, length, place);
    return false;
  });
  return rule;
}

}  // namespace stagecraft
