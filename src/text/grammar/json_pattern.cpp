#include "text/grammar/json_pattern.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "text/grammar/grammar_builder.h"
#include "text/unicode.h"

namespace stagecraft {
namespace {

constexpr std::size_t kMaxNesting = 50;

// Characters that JSON strings contain unescaped: no quote, backslash or control character.
CharacterRanges without_escapes(const CharacterRanges& ranges) {
  CharacterRanges others = all_but(ranges);
  others.insert(others.end(),
                {{0, 0x1f}, {'"', '"'}, {'\\', '\\'}, {0x7f, 0x7f}, {0xd800, 0xdfff}});
  return all_but(std::move(others));
}

bool contains(const CharacterRanges& ranges, char32_t c) {
  return std::ranges::any_of(
      ranges, [&](const CharacterRange& range) { return range.first <= c && c <= range.second; });
}

class PatternParser {
 public:
  explicit PatternParser(std::string_view text) : text_(text) {}

  std::string parse() {
    const bool from_begin = take('^');
    std::string body = alternatives(0);
    const bool to_end = take('$');
    if (at_ < text_.size()) refuse("this character is not supported here");
    if ((from_begin || to_end) && has_top_choice_) {
      refuse_at(0, "expected a group around a choice between ^ and $: ^(a|b)$");
    }
    return (from_begin ? "" : "char* ") + ("(" + body + ")") + (to_end ? "" : " char*");
  }

 private:
  std::string alternatives(std::size_t nesting) {
    if (nesting > kMaxNesting) refuse("too many nested groups");
    std::string result = sequence(nesting);
    while (take('|')) {
      if (nesting == 0) has_top_choice_ = true;
      result += " | " + sequence(nesting);
      check_size(result);
    }
    return result;
  }

  std::string sequence(std::size_t nesting) {
    std::string result;
    while (at_ < text_.size() && text_[at_] != '|' && text_[at_] != ')') {
      if (text_[at_] == '$' && at_ + 1 == text_.size() && nesting == 0) break;
      if (!result.empty()) result += ' ';
      result += item(nesting);
      result += repetition();
      check_size(result);
    }
    return result.empty() ? "\"\"" : result;
  }

  std::string item(std::size_t nesting) {
    const char c = text_[at_];
    if (c == '(') {
      ++at_;
      if (take('?') && !take(':')) refuse("expected (?: or a group without '?'");
      const std::string body = alternatives(nesting + 1);
      if (!take(')')) refuse("expected ')'");
      return "(" + body + ")";
    }
    if (std::string_view("^$*+?{}]").find(c) != std::string_view::npos)
      refuse("this character is not supported here");
    if (c == '.') {
      ++at_;
      return expression(all_but({{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}}));
    }
    if (c == '[') return expression(character_class());
    return expression(c == '\\' ? escape() : one_character());
  }

  CharacterRanges one_character() {
    const CodePoint c = first_code_point(text_.substr(at_));
    at_ += c.length;
    return {{c.value, c.value}};
  }

  CharacterRanges escape() {
    const char c = ++at_ < text_.size() ? text_[at_] : '\0';
    const CharacterRanges digits = {{'0', '9'}};
    const CharacterRanges word = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
    // White space of JavaScript, whose regular expressions JSON Schema uses.
    const CharacterRanges blanks = {
        {'\t', '\r'},     {' ', ' '},       {0xa0, 0xa0},     {0x1680, 0x1680}, {0x2000, 0x200a},
        {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000}, {0xfeff, 0xfeff}};
    switch (c) {
      case 'd':
      case 'D':
      case 'w':
      case 'W':
      case 's':
      case 'S': {
        ++at_;
        const auto lower = static_cast<char>(c | 0x20);
        const CharacterRanges& set = lower == 'd' ? digits : lower == 'w' ? word : blanks;
        return c == lower ? set : all_but(set);
      }
      case 'n':
        return ++at_, CharacterRanges{{'\n', '\n'}};
      case 'r':
        return ++at_, CharacterRanges{{'\r', '\r'}};
      case 't':
        return ++at_, CharacterRanges{{'\t', '\t'}};
      default:
        if (std::string_view(R"(\.^$*+?()[]{}|/-"' ,:;@#%&=!<>~_`)").find(c) ==
            std::string_view::npos) {
          refuse("this escape is not supported");
        }
        return one_character();
    }
  }

  CharacterRanges character_class() {
    ++at_;
    const bool negated = take('^');
    CharacterRanges ranges;
    while (!take(']')) {
      if (at_ == text_.size()) refuse("expected ']'");
      if (text_[at_] == '[') refuse("expected \\[ in a character class");
      CharacterRanges first = text_[at_] == '\\' ? escape() : one_character();
      const bool single = first.size() == 1 && first[0].first == first[0].second;
      if (single && at_ + 1 < text_.size() && text_[at_] == '-' && text_[at_ + 1] != ']') {
        ++at_;
        const CharacterRanges last = text_[at_] == '\\' ? escape() : one_character();
        if (last.size() != 1 || last[0].first != last[0].second || last[0].first < first[0].first) {
          refuse("expected a range in ascending order");
        }
        first[0].second = last[0].first;
      }
      ranges.insert(ranges.end(), first.begin(), first.end());
    }
    return negated ? all_but(std::move(ranges)) : ranges;
  }

  // One of these characters, escaped as in a JSON string. Control characters that JSON escapes as
  // \u00XX are left out.
  std::string expression(const CharacterRanges& ranges) {
    std::vector<std::string> ways;
    std::string plain;
    for (const auto& [first, last] : without_escapes(ranges)) {
      plain += fmt::format("\\U{:08x}", static_cast<unsigned>(first));
      if (last > first) plain += fmt::format("-\\U{:08x}", static_cast<unsigned>(last));
    }
    if (!plain.empty()) ways.push_back("[" + plain + "]");
    for (const auto& [c, written] : {std::pair{U'"', R"("\\\"")"},
                                     {U'\\', R"("\\\\")"},
                                     {U'\n', R"("\\n")"},
                                     {U'\r', R"("\\r")"},
                                     {U'\t', R"("\\t")"}}) {
      if (contains(ranges, c)) ways.emplace_back(written);
    }
    if (ways.empty()) refuse("this matches no character that a JSON string can contain");
    std::string result = ways.front();
    for (std::size_t i = 1; i < ways.size(); ++i) result += " | " + ways[i];
    return ways.size() == 1 ? result : "(" + result + ")";
  }

  std::string repetition() {
    std::string result;
    if (at_ < text_.size() && std::string_view("*+?").find(text_[at_]) != std::string_view::npos) {
      result = text_[at_++];
    } else if (const std::size_t begin = at_; take('{')) {
      const std::optional<std::size_t> min = count();
      std::optional<std::size_t> max = min;
      if (take(',')) max = count();
      if (!min || !take('}')) refuse("expected {m}, {m,} or {m,n}");
      if (max && *max < *min) refuse_at(begin, "expected {m,n} with m not above n");
      result = max ? fmt::format("{{{},{}}}", *min, *max) : fmt::format("{{{},}}", *min);
    }
    if (!result.empty()) take('?');  // lazy: matches the same texts
    return result;
  }

  // nullopt if there is no digit.
  std::optional<std::size_t> count() {
    try {
      return take_repeats(text_, at_);
    } catch (const Error& problem) {
      refuse(problem.what());
    }
  }

  // The expression may be a hundred times as long as the pattern.
  void check_size(const std::string& expression) const {
    if (expression.size() <= Grammar::kMaxBytes) return;
    refuse(fmt::format("expected a pattern whose grammar has at most {} bytes, found more",
                       Grammar::kMaxBytes));
  }

  bool take(char c) {
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  [[noreturn]] void refuse(std::string_view problem) const { refuse_at(at_, problem); }
  [[noreturn]] static void refuse_at(std::size_t at, std::string_view problem) {
    throw Error("column {}: {}", at + 1, problem);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool has_top_choice_ = false;
};

}  // namespace

std::string json_pattern_gbnf(std::string_view pattern) { return PatternParser(pattern).parse(); }

}  // namespace stagecraft
