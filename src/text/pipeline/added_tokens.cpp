#include "text/pipeline/added_tokens.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "text/unicode.h"

namespace stagecraft {
namespace {

// A limit is needed: in the worst case, searching takes a token's length at each byte of a text.
constexpr std::size_t kMaxBytes = 1024;
constexpr std::size_t kMaxNormalizedBytes = 4 * kMaxBytes;

bool ends_with_word(std::string_view text) {
  return !text.empty() && is_word(last_code_point(text).value);
}

bool starts_with_word(std::string_view text) {
  return !text.empty() && is_word(first_code_point(text).value);
}

}  // namespace

// --- LiteralMatcher ---

LiteralMatcher::LiteralMatcher(std::vector<std::pair<std::string, std::size_t>> literals)
    : literals_(std::move(literals)) {
  std::sort(literals_.begin(), literals_.end());
  for (std::size_t i = 0; i < literals_.size(); ++i) {
    auto& range = by_first_byte_[static_cast<unsigned char>(literals_[i].first[0])];
    if (range.first == range.second) range.first = i;
    range.second = i + 1;
  }
}

std::optional<LiteralMatcher::Found> LiteralMatcher::find(std::string_view text,
                                                          std::size_t from) const {
  for (std::size_t begin = from; begin < text.size(); ++begin) {
    // The literals that match the text so far; each iteration compares one more byte. They are
    // sorted, so they form a range, and a literal that ends here is its first element.
    auto [low, high] = by_first_byte_[static_cast<unsigned char>(text[begin])];
    std::optional<Found> longest;
    for (std::size_t length = 1; low < high; ++length) {
      if (literals_[low].first.size() == length) {
        longest = Found{begin, begin + length, literals_[low].second};
        ++low;
      }
      if (begin + length == text.size()) break;
      const auto first = literals_.begin();
      const auto byte_at = [length](const auto& literal) {
        return static_cast<unsigned char>(literal.first[length]);
      };
      const auto byte = static_cast<unsigned char>(text[begin + length]);
      const auto range_begin = first + static_cast<std::ptrdiff_t>(low);
      const auto range_end = first + static_cast<std::ptrdiff_t>(high);
      const auto lower = std::partition_point(
          range_begin, range_end, [&](const auto& literal) { return byte_at(literal) < byte; });
      const auto upper = std::partition_point(
          lower, range_end, [&](const auto& literal) { return byte_at(literal) == byte; });
      low = static_cast<std::size_t>(lower - first);
      high = static_cast<std::size_t>(upper - first);
    }
    if (longest) return longest;
  }
  return std::nullopt;
}

// --- AddedTokens ---

AddedTokens::AddedTokens(const JsonNode& array, const Vocabulary& vocabulary,
                         const Normalizer* normalizer) {
  const auto elements = array.elements();
  const std::size_t end = vocabulary.end_id() + largest_end_id(array.size());
  for (const JsonNode node : elements) add(node, vocabulary, normalizer, end);

  std::vector<std::pair<std::string, std::size_t>> raw;
  std::vector<std::pair<std::string, std::size_t>> normalized;
  std::unordered_map<std::string_view, std::size_t> seen;  // normalized patterns
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    const AddedToken& token = tokens_[i];
    if (!token.normalized) {
      raw.emplace_back(token.pattern, i);
    } else if (const auto [other, is_new] = seen.emplace(token.pattern, i); is_new) {
      normalized.emplace_back(token.pattern, i);
    } else {
      array.refuse("tokens that differ after normalization",
                   fmt::format("'{}' and '{}'", printable(tokens_[other->second].content, 40),
                               printable(token.content, 40)));
    }
  }
  raw_ = LiteralMatcher(std::move(raw));
  normalized_ = LiteralMatcher(std::move(normalized));
}

// Hugging Face renumbers the tokens that its model does not know, in their order. In a file that it
// wrote, this gives the numbers in the file. Here the numbers in the file count, and a
// contradiction is an error.
void AddedTokens::add(const JsonNode& node, const Vocabulary& vocabulary,
                      const Normalizer* normalizer, std::size_t end_id) {
  AddedToken token;
  token.content = node.at("content").string();
  if (token.content.empty()) return;
  if (token.content.size() > kMaxBytes) {
    node.at("content").refuse(fmt::format("at most {} bytes", kMaxBytes),
                              fmt::format("{}", token.content.size()));
  }
  const JsonNode id_node = node.at("id");
  const std::int64_t id = id_node.integer();
  if (id < 0 || static_cast<std::uint64_t>(id) >= end_id) {
    id_node.refuse(fmt::format("an id from 0 to {}", end_id - 1));
  }
  token.id = static_cast<TokenId>(id);
  token.single_word = node.boolean_or("single_word", false);
  token.lstrip = node.boolean_or("lstrip", false);
  token.rstrip = node.boolean_or("rstrip", false);
  token.special = node.boolean_or("special", false);
  token.normalized = node.boolean_or("normalized", !token.special);

  if (const auto known = vocabulary.find(token.content); known && *known != token.id) {
    id_node.refuse(
        fmt::format("{}, as '{}' has in model.vocab", *known, printable(token.content, 40)));
  } else if (!known && vocabulary.contains(token.id)) {
    id_node.refuse(fmt::format("a unique id for '{}'", printable(token.content, 40)),
                   fmt::format("{}, which '{}' has in model.vocab", token.id,
                               printable(vocabulary.text(token.id), 40)));
  }
  token.pattern = token.content;
  if (token.normalized && normalizer != nullptr) {
    bool at_start = true;
    const JsonNode content = node.at("content");
    const GrowthLimit limit(content.where(), token.pattern.size());
    normalizer->apply(token.pattern, at_start, limit);
    if (token.pattern.empty()) content.refuse("a text that is not empty after normalization");
    if (token.pattern.size() > kMaxNormalizedBytes) {
      content.refuse(fmt::format("at most {} bytes after normalization", kMaxNormalizedBytes),
                     fmt::format("{}", token.pattern.size()));
    }
  }

  const auto same_id = by_id_.find(token.id);
  const auto same_content = by_content_.find(token.content);
  if (same_id != by_id_.end() && same_content != by_content_.end() &&
      same_id->second == same_content->second) {
    tokens_[same_id->second] = std::move(token);  // given twice: the later flags count
    return;
  }
  if (same_id != by_id_.end() || same_content != by_content_.end()) {
    id_node.refuse("one id for each added token, and one token for each id");
  }
  by_id_.emplace(token.id, tokens_.size());
  by_content_.emplace(token.content, tokens_.size());
  end_id_ = std::max(end_id_, static_cast<std::size_t>(token.id) + 1);
  tokens_.push_back(std::move(token));
}

std::vector<AddedTokens::Segment> AddedTokens::split(std::string_view text, Kind kind,
                                                     bool parse_special,
                                                     std::span<const TextSpan> typed) const {
  const LiteralMatcher& matcher = kind == Kind::kRaw ? raw_ : normalized_;
  auto next_typed = typed.begin();  // the first that does not end before the match
  std::vector<Segment> segments;
  std::size_t covered = 0;
  std::size_t end_of_blanks = 0;  // of a run that was measured before: blanks may be tokens
  for (std::size_t from = 0;;) {
    const auto found = matcher.find(text, from);
    if (!found) break;
    // A match that does not count is skipped whole, including other tokens inside it.
    from = found->end;
    const AddedToken& token = tokens_[found->value];
    if (token.special && !parse_special) continue;
    while (next_typed != typed.end() && next_typed->end <= found->begin) ++next_typed;
    if (token.special && next_typed != typed.end() && next_typed->begin < found->end) {
      // If only a part of it was typed, a token of the frame may begin inside.
      const bool inside = next_typed->begin <= found->begin && found->end <= next_typed->end;
      if (!inside) from = found->begin + 1;
      continue;
    }
    if (token.single_word && (ends_with_word(text.substr(0, found->begin)) ||
                              starts_with_word(text.substr(found->end)))) {
      continue;
    }
    std::size_t begin = found->begin;
    std::size_t end = found->end;
    if (token.lstrip && begin > covered) {
      begin = covered + begin_of_trailing_blanks(text.substr(covered, begin - covered));
    } else if (token.lstrip) {
      begin = covered;  // a token of blanks, whose beginning the token before it has taken
    }
    if (token.rstrip) {
      if (end > end_of_blanks) end_of_blanks = end + length_of_leading_blanks(text.substr(end));
      end = end_of_blanks;
    }
    if (begin >= end) continue;
    if (covered < begin) segments.push_back({covered, begin, std::nullopt});
    segments.push_back({begin, end, token.id});
    covered = end;
  }
  if (covered != text.size()) segments.push_back({covered, text.size(), std::nullopt});
  return segments;
}

const AddedToken* AddedTokens::find(TokenId id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &tokens_[found->second];
}

std::optional<TokenId> AddedTokens::find(std::string_view content) const {
  const auto found = by_content_.find(std::string(content));
  if (found == by_content_.end()) return std::nullopt;
  return tokens_[found->second].id;
}

}  // namespace stagecraft
