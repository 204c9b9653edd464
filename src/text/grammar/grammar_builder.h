#pragma once

#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "text/grammar/grammar.h"

namespace stagecraft {

// The first and the last character, inclusive.
using CharacterRange = std::pair<char32_t, char32_t>;
using CharacterRanges = std::vector<CharacterRange>;

// All characters except these.
CharacterRanges all_but(CharacterRanges ranges);

// Reads the digits of a repetition such as {2,5} from `at` on, and moves `at` behind them. nullopt
// if there are none. Throws Error, with `at` as it was, if they are above Grammar::kMaxRepeats.
std::optional<std::size_t> take_repeats(std::string_view text, std::size_t& at);

// Collects the rules of a grammar while its text is read.
class GrammarBuilder {
 public:
  using Symbol = Grammar::Symbol;
  using Sequence = std::vector<Symbol>;

  // Adds a rule, still without sequences.
  std::uint32_t add_rule();
  // Throws Error if there are too many symbols.
  void add_sequence(std::uint32_t rule, Sequence sequence);

  // Matches one character of these ranges. Surrogates (U+D800 to U+DFFF) are not characters.
  Symbol character(CharacterRanges ranges);
  // Appends the UTF-8 bytes of `c` to `sequence`.
  void append_character(char32_t c, Sequence& sequence);
  // `item`, min to max times; nullopt: no upper limit.
  Sequence repeated(const Sequence& item, std::size_t min, std::optional<std::size_t> max);

  // Finds a rule that begins with itself, or rules that begin with each other. An automaton would
  // expand them forever. Empty if there are none.
  std::vector<std::uint32_t> left_recursion() const;

  // The grammar without the sequences that never end, such as "x" a in a ::= "x" a | "y": a text
  // that began with one could not be finished. nullopt if no text matches `root`.
  std::optional<Grammar> build(std::uint32_t root) const;

 private:
  Symbol byte_set(const Grammar::ByteSet& set);
  Symbol byte_range(std::uint8_t first, std::uint8_t last);
  Symbol reference(const Sequence& item);
  void add_utf8(std::uint32_t rule, char32_t first, char32_t last);
  std::vector<bool> rules_of_symbols(bool with_bytes) const;

  // A reference to a rule before the first byte of another rule.
  struct Edge {
    std::uint32_t to;
    bool has_more;  // symbols follow the reference
  };
  using Edges = std::vector<std::vector<Edge>>;  // of each rule
  Edges left_edges() const;
  // The strongly connected component of each rule, named by one of its members.
  static std::vector<std::uint32_t> components(const Edges& edges);

  std::vector<std::vector<Sequence>> rules_;
  std::vector<Grammar::ByteSet> byte_sets_;
  std::unordered_map<Grammar::ByteSet, std::uint32_t> byte_set_ids_;  // indices in byte_sets_
  std::map<CharacterRanges, Symbol> characters_;
  std::size_t n_symbols_ = 0;
};

}  // namespace stagecraft
