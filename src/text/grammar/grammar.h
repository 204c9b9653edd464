#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace stagecraft {

// A grammar that is well written, but that a text cannot follow. what() names the grammar as
// Grammar::parse did; problem() does not.
class GrammarError : public Error {
 public:
  GrammarError(const std::string& where, std::string problem)
      : Error("{}: {}", where, problem), problem_(std::move(problem)) {}
  const std::string& problem() const { return problem_; }

 private:
  std::string problem_;
};

// A context-free grammar over bytes: the set of allowed texts. Immutable, so threads may share it.
//
//   GBNF text          root ::= "ja" | "né" | [0-9]+
//   rules over bytes   root ::= 'j' 'a' | 'n' 0xc3 0xa9 | digits;  digits ::= [0-9] digits | [0-9]
//
// A character of several bytes becomes a sequence of bytes, and a range of such characters becomes
// a rule. Code that uses a Grammar therefore never needs to know where a character ends.
class Grammar {
 public:
  // GBNF as documented by llama.cpp (grammars/README.md): rules "NAME ::= ...", one of them named
  // `root`; "literals", [classes], '.', groups, |, and the repetitions * + ? {m} {m,} {,n} {m,n};
  // comments from # to the end of the line. `where` names the text in errors: "WHERE: line 3,
  // column 7: expected ..., found ...". Throws Error if the text is wrong or too large, or if a
  // rule begins with itself (left recursion).
  static Grammar parse(std::string_view gbnf, const std::string& where);

  // A rule is one or more sequences of symbols. All sequences are stored in one list, each closed
  // by an End. A Position is an index into that list.
  struct Symbol {
    enum class Kind : std::uint8_t { End, Bytes, Rule };
    Kind kind = Kind::End;
    std::uint32_t index = 0;  // of the byte set or rule
  };
  using Position = std::uint32_t;
  using ByteSet = std::bitset<256>;

  const Symbol& at(Position position) const { return symbols_[position]; }
  const ByteSet& bytes(const Symbol& symbol) const { return byte_sets_[symbol.index]; }
  // The positions at which the sequences of a rule begin.
  const std::vector<Position>& sequences(std::uint32_t rule) const { return rules_[rule]; }
  std::uint32_t root() const { return root_; }
  const std::string& where() const { return where_; }  // as given to parse()

  // Two bytes are in the same class if every byte set contains both or neither. Most grammars have
  // about a dozen classes, so a table with one column per class is small.
  std::size_t n_classes() const { return n_classes_; }
  std::uint8_t class_of(std::uint8_t byte) const { return class_of_[byte]; }

  static constexpr std::size_t kMaxBytes = 1 << 20;
  static constexpr std::size_t kMaxSymbols = 200'000;
  static constexpr std::size_t kMaxRepeats = 10'000;
  static constexpr std::size_t kMaxNesting = 100;

 private:
  friend class GrammarBuilder;

  std::string where_;
  std::vector<Symbol> symbols_;
  std::vector<std::vector<Position>> rules_;
  std::vector<ByteSet> byte_sets_;
  std::uint32_t root_ = 0;
  std::size_t n_classes_ = 1;
  std::array<std::uint8_t, 256> class_of_ = {};
};

}  // namespace stagecraft
