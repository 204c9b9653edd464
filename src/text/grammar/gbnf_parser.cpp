#include <algorithm>

#include "base/ascii.h"
#include "base/error.h"
#include "base/number.h"
#include "base/utf8.h"
#include "text/grammar/grammar_builder.h"
#include "text/unicode.h"

namespace stagecraft {
namespace {

constexpr char32_t kLastCharacter = 0x10ffff;

bool is_name(char c) { return is_ascii_letter(c) || is_ascii_digit(c) || c == '-' || c == '_'; }

// Reads GBNF from left to right. Each read_ function leaves `at_` after the text that it has read.
class GbnfParser {
 public:
  GbnfParser(std::string_view text, const std::string& where) : text_(text), where_(where) {
    constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";  // some editors write it
    if (text_.starts_with(kByteOrderMark)) text_.remove_prefix(kByteOrderMark.size());
  }

  Grammar parse() {
    if (text_.size() > Grammar::kMaxBytes) {
      throw Error("{}: expected at most {} bytes, found {}", where_, Grammar::kMaxBytes,
                  text_.size());
    }
    check_utf8(where_, text_);
    try {
      skip_blanks(true);
      while (at_ < text_.size()) read_rule();
    } catch (const Refusal&) {
      throw;
    } catch (const Error& problem) {  // from grammar_builder.h, which does not know the place
      refuse_at(at_, problem.what());
    }
    return finish();
  }

 private:
  using Sequence = GrammarBuilder::Sequence;
  struct Refusal : Error {
    using Error::Error;
  };
  struct Name {
    std::uint32_t rule = 0;
    std::size_t place = 0;  // of the definition; without one, of the first use
    bool defined = false;
  };

  Grammar finish() {
    for (const auto& [name, known] : names_) {
      if (!known.defined) {
        refuse_at(known.place, fmt::format("rule '{}' is used, but not defined", printable(name)));
      }
    }
    const auto root = names_.find("root");
    if (root == names_.end()) throw Error("{}: expected a rule 'root', found none", where_);
    // An unnamed rule can return to itself only through a named rule.
    const std::vector<std::uint32_t> members = builder_.left_recursion();
    for (const auto& [name, known] : names_) {
      if (std::ranges::count(members, known.rule) == 0) continue;
      refuse_at(known.place,
                fmt::format("rule '{}' begins with itself (left recursion): write it as "
                            "a repetition",
                            printable(name)));
    }
    std::optional<Grammar> grammar = builder_.build(root->second.rule);
    if (!grammar) {
      throw GrammarError(place_of(root->second.place),
                         "expected rules that match a finite text, found endless recursion");
    }
    return std::move(*grammar);
  }

  void read_rule() {
    const std::size_t begin = at_;
    const std::string name = read_name();
    Name& known = name_of(name, begin);
    if (known.defined) refuse_at(begin, fmt::format("rule '{}' is defined twice", printable(name)));
    known.defined = true;
    known.place = begin;
    const std::uint32_t rule = known.rule;
    skip_blanks(false);
    if (!text_.substr(at_).starts_with("::=")) expected("'::='");
    at_ += 3;
    skip_blanks(true);
    read_alternatives(rule, 0);
    if (at_ < text_.size() && text_[at_] != '\n' && text_[at_] != '\r') {
      expected("a symbol, '|' or the end of the line");
    }
    skip_blanks(true);
  }

  void read_alternatives(std::uint32_t rule, std::size_t nesting) {
    builder_.add_sequence(rule, read_sequence(nesting));
    while (next_is('|')) {
      ++at_;
      skip_blanks(true);
      builder_.add_sequence(rule, read_sequence(nesting));
    }
  }

  Sequence read_sequence(std::size_t nesting) {
    Sequence sequence;
    while (at_ < text_.size()) {
      std::optional<Sequence> item = read_item(nesting);
      if (!item) break;
      skip_blanks(nesting > 0);
      for (bool repeats = true; repeats;) {
        repeats = read_repetition(*item);
        if (repeats) skip_blanks(nesting > 0);
      }
      sequence.insert(sequence.end(), item->begin(), item->end());
      if (sequence.size() > Grammar::kMaxSymbols) refuse_at(at_, "this sequence is too long");
    }
    return sequence;
  }

  // nullopt if no item begins at `at_`.
  std::optional<Sequence> read_item(std::size_t nesting) {
    const char c = text_[at_];
    if (c == '"') return read_literal();
    if (c == '[') return Sequence{read_class()};
    if (c == '(') return Sequence{read_group(nesting + 1)};
    if (c == '.') {
      ++at_;
      return Sequence{builder_.character({{0, kLastCharacter}})};
    }
    if (c == '<') refuse_at(at_, "tokens (<...>) are not supported: write their text");
    if (!is_name(c)) return std::nullopt;
    const std::size_t begin = at_;
    return Sequence{{Grammar::Symbol::Kind::Rule, name_of(read_name(), begin).rule}};
  }

  Grammar::Symbol read_group(std::size_t nesting) {
    if (nesting > Grammar::kMaxNesting) {
      refuse_at(at_, fmt::format("expected at most {} nested groups", Grammar::kMaxNesting));
    }
    ++at_;
    skip_blanks(true);
    const std::uint32_t rule = builder_.add_rule();
    read_alternatives(rule, nesting);
    if (!next_is(')')) expected("')'");
    ++at_;
    return {Grammar::Symbol::Kind::Rule, rule};
  }

  Sequence read_literal() {
    Sequence bytes;
    const std::size_t begin = at_++;
    while (!next_is('"')) {
      if (at_ == text_.size() || text_[at_] == '\n')
        refuse_at(begin, "expected a '\"' at the end of this literal, found none");
      builder_.append_character(read_character(), bytes);
      if (bytes.size() > Grammar::kMaxSymbols) refuse_at(begin, "this literal is too long");
    }
    ++at_;
    return bytes;
  }

  Grammar::Symbol read_class() {
    const std::size_t begin = at_++;
    const bool negated = next_is('^');
    if (negated) ++at_;
    CharacterRanges ranges;
    while (!next_is(']')) {
      if (at_ == text_.size() || text_[at_] == '\n')
        refuse_at(begin, "expected a ']' at the end of this character class, found none");
      const std::size_t from = at_;
      const char32_t first = read_character();
      char32_t last = first;
      if (next_is('-') && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
        ++at_;
        last = read_character();
      }
      if (last < first) refuse_at(from, "expected a range in ascending order");
      ranges.emplace_back(first, last);
    }
    ++at_;
    if (negated) ranges = all_but(std::move(ranges));
    if (ranges.empty()) refuse_at(begin, "this character class contains no character");
    return builder_.character(std::move(ranges));
  }

  char32_t read_character() {
    if (at_ == text_.size()) expected("a character");
    if (text_[at_] == '\\') return read_escape();
    const CodePoint c = first_code_point(text_.substr(at_));
    at_ += c.length;
    return c.value;
  }

  char32_t read_escape() {
    const std::size_t begin = at_++;
    const char c = at_ < text_.size() ? text_[at_++] : '\0';
    switch (c) {
      case 'n':
        return U'\n';
      case 'r':
        return U'\r';
      case 't':
        return U'\t';
      case 'x':
        return read_hex(begin, 2);
      case 'u':
        return read_hex(begin, 4);
      case 'U':
        return read_hex(begin, 8);
      case '\\':
      case '"':
      case '[':
      case ']':
      case '-':
      case '^':
        return static_cast<char32_t>(c);
      default:
        refuse_at(begin, R"(expected an escape of \n \r \t \\ \" \[ \] \- \^ \x \u \U)");
    }
  }

  char32_t read_hex(std::size_t begin, std::size_t digits) {
    const std::string_view text = text_.substr(at_, digits);
    const auto value = integer_of<std::uint32_t>(text, 16);
    if (text.size() != digits || !value) {
      refuse_at(begin, fmt::format("expected {} hexadecimal digits", digits));
    }
    if (!is_character(*value)) refuse_at(begin, "this is not a Unicode character");
    at_ += digits;
    return *value;
  }

  // Reads * + ? {m} {m,} {,n} or {m,n} after an item. Returns false if none of them follows.
  bool read_repetition(Sequence& item) {
    if (at_ == text_.size()) return false;
    std::size_t min = 0;
    std::optional<std::size_t> max;
    const std::size_t begin = at_;
    switch (text_[at_]) {
      case '*':
        break;
      case '+':
        min = 1;
        break;
      case '?':
        max = 1;
        break;
      case '{':
        read_counts(min, max);
        break;
      default:
        return false;
    }
    ++at_;
    if (max && *max < min) refuse_at(begin, "expected {m,n} with m not above n");
    item = builder_.repeated(item, min, max);
    return true;
  }

  // Leaves `at_` at the closing brace.
  void read_counts(std::size_t& min, std::optional<std::size_t>& max) {
    ++at_;
    skip_blanks(false);
    const std::optional<std::size_t> first = take_repeats(text_, at_);
    min = first.value_or(0);
    max = first;
    skip_blanks(false);
    if (next_is(',')) {
      ++at_;
      skip_blanks(false);
      max = take_repeats(text_, at_);
      skip_blanks(false);
      if (!first && !max) expected("a number");
    } else if (!first) {
      expected("a number");
    }
    if (!next_is('}')) expected("'}'");
  }

  std::string read_name() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_name(text_[at_])) ++at_;
    if (at_ == begin) expected("the name of a rule");
    return std::string(text_.substr(begin, at_ - begin));
  }

  Name& name_of(const std::string& name, std::size_t use) {
    const auto known = names_.find(name);
    if (known != names_.end()) return known->second;
    return names_.emplace(name, Name{builder_.add_rule(), use, false}).first->second;
  }

  bool next_is(char c) const { return at_ < text_.size() && text_[at_] == c; }

  void skip_blanks(bool over_lines) {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') {
        while (at_ < text_.size() && text_[at_] != '\n' && text_[at_] != '\r') ++at_;
      } else if (c == ' ' || c == '\t' || (over_lines && (c == '\n' || c == '\r'))) {
        ++at_;
      } else {
        return;
      }
    }
  }

  [[noreturn]] void expected(const std::string& what) const {
    const std::string found =
        at_ == text_.size()
            ? "the end"
            : fmt::format(
                  "'{}'",
                  printable(text_.substr(
                      at_, std::max<std::size_t>(1, utf8_sequence_length(text_.substr(at_))))));
    refuse_at(at_, fmt::format("expected {}, found {}", what, found));
  }

  [[noreturn]] void refuse_at(std::size_t at, const std::string& problem) const {
    throw Refusal("{}: {}", place_of(at), problem);
  }

  std::string place_of(std::size_t at) const {
    const std::string_view before = text_.substr(0, at);
    const auto line = std::ranges::count(before, '\n') + 1;
    const std::size_t begin =
        before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
    return fmt::format("{}: line {}, column {}", where_, line, at - begin + 1);
  }

  std::string_view text_;
  const std::string& where_;
  std::size_t at_ = 0;
  GrammarBuilder builder_;
  std::map<std::string, Name> names_;
};

}  // namespace

Grammar Grammar::parse(std::string_view gbnf, const std::string& where) {
  Grammar grammar = GbnfParser(gbnf, where).parse();
  grammar.where_ = where;
  return grammar;
}

}  // namespace stagecraft
