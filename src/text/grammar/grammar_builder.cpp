#include "text/grammar/grammar_builder.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/number.h"
#include "text/unicode.h"

namespace stagecraft {
namespace {

using Kind = Grammar::Symbol::Kind;

constexpr char32_t kLastOfBytes[] = {0x7f, 0x7ff, 0xffff, 0x10ffff};  // of 1, 2, 3 and 4 bytes
constexpr char32_t kFirstSurrogate = 0xd800, kLastSurrogate = 0xdfff;

std::string utf8_of(char32_t c) {
  std::string bytes;
  append_utf8(bytes, c);
  return bytes;
}

// Sorted; overlapping and adjacent ranges are joined.
CharacterRanges merged(CharacterRanges ranges) {
  std::ranges::sort(ranges);
  CharacterRanges result;
  for (const auto& [first, last] : ranges) {
    if (!result.empty() && first <= static_cast<char32_t>(result.back().second + 1)) {
      result.back().second = std::max(result.back().second, last);
    } else {
      result.emplace_back(first, last);
    }
  }
  return result;
}

}  // namespace

CharacterRanges all_but(CharacterRanges ranges) {
  std::ranges::sort(ranges);
  CharacterRanges result;
  char32_t next = 0;
  for (const auto& [first, last] : ranges) {
    if (first > next) result.emplace_back(next, static_cast<char32_t>(first - 1));
    next = std::max(next, static_cast<char32_t>(last + 1));
  }
  if (next <= kLastOfBytes[3]) result.emplace_back(next, kLastOfBytes[3]);
  return result;
}

std::optional<std::size_t> take_repeats(std::string_view text, std::size_t& at) {
  const std::size_t end = std::min(text.find_first_not_of("0123456789", at), text.size());
  if (end == at) return std::nullopt;
  const auto count = integer_of<std::size_t>(text.substr(at, end - at));
  if (!count || *count > Grammar::kMaxRepeats) {
    throw Error("expected at most {} repetitions", Grammar::kMaxRepeats);
  }
  at = end;
  return count;
}

std::uint32_t GrammarBuilder::add_rule() {
  rules_.emplace_back();
  return static_cast<std::uint32_t>(rules_.size() - 1);
}

void GrammarBuilder::add_sequence(std::uint32_t rule, Sequence sequence) {
  n_symbols_ += sequence.size() + 1;
  if (n_symbols_ > Grammar::kMaxSymbols) {
    throw Error("expected at most {} symbols after repetitions are expanded, found more",
                Grammar::kMaxSymbols);
  }
  rules_[rule].push_back(std::move(sequence));
}

GrammarBuilder::Symbol GrammarBuilder::byte_set(const Grammar::ByteSet& set) {
  const auto [found, is_new] =
      byte_set_ids_.try_emplace(set, static_cast<std::uint32_t>(byte_sets_.size()));
  if (is_new) byte_sets_.push_back(set);
  return {Kind::Bytes, found->second};
}

GrammarBuilder::Symbol GrammarBuilder::byte_range(std::uint8_t first, std::uint8_t last) {
  Grammar::ByteSet set;
  for (std::size_t byte = first; byte <= last; ++byte) set.set(byte);
  return byte_set(set);
}

void GrammarBuilder::append_character(char32_t c, Sequence& sequence) {
  for (const char byte : utf8_of(c)) sequence.push_back(byte_range(byte, byte));
}

GrammarBuilder::Symbol GrammarBuilder::character(CharacterRanges ranges) {
  ranges = merged(std::move(ranges));
  if (const auto known = characters_.find(ranges); known != characters_.end()) return known->second;
  Grammar::ByteSet ascii;
  for (const auto& [first, last] : ranges) {
    for (char32_t c = first; c <= std::min<char32_t>(last, 0x7f); ++c) ascii.set(c);
  }
  Symbol symbol;
  if (ranges.empty() || ranges.back().second <= 0x7f) {
    symbol = byte_set(ascii);
  } else {
    symbol = {Kind::Rule, add_rule()};
    if (ascii.any()) add_sequence(symbol.index, {byte_set(ascii)});
    for (const auto& [first, last] : ranges) {
      const char32_t begin = std::max<char32_t>(first, 0x80);
      if (begin < kFirstSurrogate) {
        add_utf8(symbol.index, begin, std::min<char32_t>(last, kFirstSurrogate - 1));
      }
      add_utf8(symbol.index, std::max<char32_t>(begin, kLastSurrogate + 1), last);
    }
  }
  characters_.emplace(std::move(ranges), symbol);
  return symbol;
}

// Splits a range until, in each part, every byte has an independent range: U+0400 to U+047f becomes
// [d0-d0][80-bf] and [d1-d1][80-bf].
void GrammarBuilder::add_utf8(std::uint32_t rule, char32_t first, char32_t last) {
  if (first > last) return;
  for (const char32_t longest : kLastOfBytes) {
    if (first <= longest && longest < last) {
      add_utf8(rule, first, longest);
      return add_utf8(rule, longest + 1, last);
    }
  }
  const std::string from = utf8_of(first), to = utf8_of(last);
  const std::size_t n = from.size();
  for (std::size_t i = 1; i < n; ++i) {
    const char32_t low = (char32_t{1} << (6 * i)) - 1;  // mask of the bits in the last i bytes
    if ((first & ~low) == (last & ~low)) continue;
    if ((first & low) != 0) {
      add_utf8(rule, first, first | low);
      return add_utf8(rule, (first | low) + 1, last);
    }
    if ((last & low) != low) {
      add_utf8(rule, first, (last & ~low) - 1);
      return add_utf8(rule, last & ~low, last);
    }
  }
  Sequence sequence;
  for (std::size_t i = 0; i < n; ++i) sequence.push_back(byte_range(from[i], to[i]));
  add_sequence(rule, std::move(sequence));
}

GrammarBuilder::Symbol GrammarBuilder::reference(const Sequence& item) {
  if (item.size() == 1) return item.front();
  const std::uint32_t rule = add_rule();
  add_sequence(rule, item);
  return {Kind::Rule, rule};
}

GrammarBuilder::Sequence GrammarBuilder::repeated(const Sequence& item, std::size_t min,
                                                  std::optional<std::size_t> max) {
  const Symbol one = reference(item);
  Sequence result(min, one);
  const auto perhaps = [&](auto rest) {  // rule ::= one rest |
    const std::uint32_t rule = add_rule();
    add_sequence(rule, rest(rule));
    add_sequence(rule, {});
    return Symbol{Kind::Rule, rule};
  };
  if (!max) {
    result.push_back(perhaps([&](std::uint32_t rule) {
      return Sequence{one, {Kind::Rule, rule}};
    }));
  } else if (*max > min) {
    Symbol more = perhaps([&](std::uint32_t) { return Sequence{one}; });
    for (std::size_t n = min + 1; n < *max; ++n) {
      more = perhaps([&](std::uint32_t) { return Sequence{one, more}; });
    }
    result.push_back(more);
  }
  return result;
}

// The rules with a sequence that consists only of such rules or, if with_bytes, bytes. With bytes:
// rules that match some text. Without bytes: rules that match the empty text. The time is
// proportional to the grammar: each symbol of a sequence is crossed off once.
std::vector<bool> GrammarBuilder::rules_of_symbols(bool with_bytes) const {
  struct Waiting {  // a sequence, and how many of its symbols are not yet found
    std::uint32_t rule;
    std::size_t n_symbols;
  };
  std::vector<Waiting> sequences;
  std::vector<std::vector<std::size_t>> users(rules_.size());  // sequences, once per symbol
  std::vector<bool> found(rules_.size(), false);
  std::vector<std::uint32_t> work;
  const auto find = [&](std::uint32_t rule) {
    if (!found[rule]) work.push_back(rule);
    found[rule] = true;
  };
  const auto is_bytes = [](const Symbol& symbol) { return symbol.kind == Kind::Bytes; };
  for (std::uint32_t rule = 0; rule < rules_.size(); ++rule) {
    for (const Sequence& sequence : rules_[rule]) {
      const auto n_bytes = static_cast<std::size_t>(std::ranges::count_if(sequence, is_bytes));
      if (n_bytes > 0 && !with_bytes) continue;
      if (n_bytes == sequence.size()) find(rule);
      for (const Symbol& symbol : sequence) {
        if (!is_bytes(symbol)) users[symbol.index].push_back(sequences.size());
      }
      sequences.push_back({rule, sequence.size() - n_bytes});
    }
  }
  while (!work.empty()) {
    const std::uint32_t rule = work.back();
    work.pop_back();
    for (const std::size_t user : users[rule]) {
      if (--sequences[user].n_symbols == 0) find(sequences[user].rule);
    }
  }
  return found;
}

GrammarBuilder::Edges GrammarBuilder::left_edges() const {
  const std::vector<bool> nullable = rules_of_symbols(false);
  Edges edges(rules_.size());
  for (std::uint32_t rule = 0; rule < rules_.size(); ++rule) {
    for (const Sequence& sequence : rules_[rule]) {
      for (std::size_t i = 0; i < sequence.size() && sequence[i].kind == Kind::Rule; ++i) {
        edges[rule].push_back({sequence[i].index, i + 1 < sequence.size()});
        if (!nullable[sequence[i].index]) break;
      }
    }
  }
  return edges;
}

// Tarjan's algorithm (1972), with an explicit stack: a grammar may be deep.
std::vector<std::uint32_t> GrammarBuilder::components(const Edges& edges) {
  constexpr std::uint32_t kNew = UINT32_MAX;
  std::vector<std::uint32_t> order(edges.size(), kNew), low(edges.size()), part(edges.size(), kNew);
  std::vector<std::uint32_t> open;
  std::vector<std::pair<std::uint32_t, std::size_t>> path;  // a rule, and its next edge
  std::uint32_t n = 0;
  const auto enter = [&](std::uint32_t rule) {
    order[rule] = low[rule] = n++;
    open.push_back(rule);
    path.emplace_back(rule, 0);
  };
  for (std::uint32_t start = 0; start < edges.size(); ++start) {
    if (order[start] == kNew) enter(start);
    while (!path.empty()) {
      const std::uint32_t rule = path.back().first;
      if (path.back().second < edges[rule].size()) {
        const std::uint32_t to = edges[rule][path.back().second++].to;
        if (order[to] == kNew) {
          enter(to);
        } else if (part[to] == kNew) {
          low[rule] = std::min(low[rule], order[to]);
        }
        continue;
      }
      path.pop_back();
      if (!path.empty()) {
        const std::uint32_t above = path.back().first;
        low[above] = std::min(low[above], low[rule]);
      }
      if (low[rule] != order[rule]) continue;
      for (std::uint32_t member = kNew; member != rule; open.pop_back()) {
        member = open.back();
        part[member] = rule;
      }
    }
  }
  return part;
}

// If a rule returns to itself before any byte, and symbols follow it, the stack grows without end.
// If no symbols follow, as in ("a"?)*, the stack does not grow.
std::vector<std::uint32_t> GrammarBuilder::left_recursion() const {
  const Edges edges = left_edges();
  const std::vector<std::uint32_t> part = components(edges);
  for (std::uint32_t rule = 0; rule < rules_.size(); ++rule) {
    for (const Edge& edge : edges[rule]) {
      if (!edge.has_more || part[edge.to] != part[rule]) continue;
      std::vector<std::uint32_t> members;
      for (std::uint32_t member = 0; member < rules_.size(); ++member) {
        if (part[member] == part[rule]) members.push_back(member);
      }
      return members;
    }
  }
  return {};
}

std::optional<Grammar> GrammarBuilder::build(std::uint32_t root) const {
  const std::vector<bool> ends = rules_of_symbols(true);
  if (!ends[root]) return std::nullopt;
  const auto never_ends = [&](const Symbol& symbol) {
    return symbol.kind == Kind::Rule && !ends[symbol.index];
  };
  Grammar grammar;
  grammar.root_ = root;
  grammar.byte_sets_ = byte_sets_;
  for (const auto& sequences : rules_) {
    auto& begins = grammar.rules_.emplace_back();
    for (const Sequence& sequence : sequences) {
      if (std::ranges::any_of(sequence, never_ends)) continue;
      begins.push_back(static_cast<Grammar::Position>(grammar.symbols_.size()));
      grammar.symbols_.insert(grammar.symbols_.end(), sequence.begin(), sequence.end());
      grammar.symbols_.emplace_back();
    }
  }
  // Each set divides every class into its members and the others.
  for (const Grammar::ByteSet& set : byte_sets_) {
    std::array<std::optional<std::uint8_t>, 512> part;  // of each class: the others, its members
    std::size_t n_classes = 0;
    for (std::size_t byte = 0; byte < 256; ++byte) {
      std::uint8_t& own = grammar.class_of_[byte];
      std::optional<std::uint8_t>& found = part[2 * std::size_t{own} + (set[byte] ? 1 : 0)];
      if (!found) found = static_cast<std::uint8_t>(n_classes++);
      own = *found;
    }
    grammar.n_classes_ = n_classes;
  }
  return grammar;
}

}  // namespace stagecraft
