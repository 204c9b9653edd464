#include "text/jinja/lexer.h"

#include <algorithm>
#include <array>

#include "base/ascii.h"
#include "base/error.h"
#include "text/jinja/characters.h"
#include "text/jinja/string_literal.h"

namespace stagecraft::jinja {
namespace {

bool is_name_character(char c) {
  return is_ascii_digit(c) || is_ascii_letter(c) || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

// Replaces \r\n and \r by \n, and removes one newline at the end.
std::string with_unix_newlines(std::string_view source) {
  std::string text;
  text.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      text += source[i];
    } else if (i + 1 == source.size() || source[i + 1] != '\n') {
      text += '\n';
    }
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

constexpr std::array<std::string_view, 26> kOperatorTokens = {
    "**", "//", "==", "!=", ">=", "<=", "+", "-", "*", "/", "%", "~", "[",
    "]",  "(",  ")",  "{",  "}",  "<",  ">", "=", ".", ":", "|", ",", ";"};

class Lexer {
 public:
  explicit Lexer(std::string_view source) : owned_(with_unix_newlines(source)), source_(owned_) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) {
      const std::size_t mark = next_mark();
      if (mark == std::string_view::npos) {
        add_data(source_.substr(at_));
        at_ = source_.size();
        break;
      }
      const char kind = source_[mark + 1];
      const char sign = mark + 2 < source_.size() ? source_[mark + 2] : '\0';
      add_data(text_before(mark, kind, sign));
      skip_to(mark + 2 + (sign == '-' || sign == '+' ? 1 : 0));
      if (kind == '#') {
        comment();
      } else if (kind == '{') {
        add(TokenKind::VariableBegin, "{{");
        inside("}}", TokenKind::VariableEnd);
      } else if (!raw()) {
        add(TokenKind::BlockBegin, "{%");
        inside("%}", TokenKind::BlockEnd);
      }
    }
    add(TokenKind::End, "end of template");
    return std::move(tokens_);
  }

 private:
  // The position of the next {{, {% or {#, or npos.
  std::size_t next_mark() const {
    std::size_t mark = source_.find('{', at_);
    while (mark != std::string_view::npos) {
      const char next = mark + 1 < source_.size() ? source_[mark + 1] : '\0';
      if (next == '{' || next == '%' || next == '#') break;
      mark = source_.find('{', mark + 1);
    }
    return mark;
  }

  // The text before a tag, without the white space that the tag removes.
  std::string_view text_before(std::size_t mark, char kind, char sign) const {
    const std::string_view text = source_.substr(at_, mark - at_);
    if (sign == '-') return text.substr(0, text.size() - trailing_space(text));
    if (sign == '+' || kind == '{') return text;
    const std::size_t line = text.rfind('\n') + 1;  // npos + 1 is 0
    const bool at_line_start = line > 0 || starts_line_;
    const bool blank = leading_space(text.substr(line)) == text.size() - line;
    return at_line_start && blank ? text.substr(0, line) : text;
  }

  void skip_to(std::size_t end) {
    line_ += static_cast<int>(std::count(source_.begin() + static_cast<std::ptrdiff_t>(at_),
                                         source_.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
    at_ = end;
  }

  void add(TokenKind kind, std::string_view text) {
    tokens_.push_back({kind, std::string(text), line_});
  }
  void add_data(std::string_view text) {
    if (!text.empty()) add(TokenKind::Data, text);
  }

  [[noreturn]] void fail(const std::string& message) const { throw SyntaxFailure(line_, message); }

  bool looking_at(std::string_view text, std::size_t from) const {
    return source_.substr(from).starts_with(text);
  }

  // Skips the end of a tag ("%}", "-%}" or "+%}") if it is at at_, and the white space that it
  // removes.
  bool skip_end(std::string_view end) {
    const char sign = at_ < source_.size() ? source_[at_] : '\0';
    const bool signed_end =
        (sign == '-' || (sign == '+' && end != "}}")) && looking_at(end, at_ + 1);
    if (!signed_end && !looking_at(end, at_)) return false;
    std::size_t after = at_ + end.size() + (signed_end ? 1 : 0);
    if (signed_end && sign == '-') {
      after += leading_space(source_.substr(after));
    } else if (!signed_end && end != "}}" && looking_at("\n", after)) {
      ++after;
    }
    skip_to(after);
    starts_line_ = source_[after - 1] == '\n';
    return true;
  }

  void comment() {
    const std::size_t end = source_.find("#}", at_);
    if (end == std::string_view::npos) fail("expected #} at the end of a comment, found none");
    const bool is_signed = end > at_ && (source_[end - 1] == '-' || source_[end - 1] == '+');
    skip_to(end - (is_signed ? 1 : 0));
    skip_end("#}");
  }

  // After "{%": whether "WORD %}" is at `from`. If so, moves `from` to the end mark.
  bool is_tag(std::string_view word, std::size_t& from) const {
    std::size_t at = from + leading_space(source_.substr(from));
    if (!looking_at(word, at)) return false;
    at += word.size();
    at += leading_space(source_.substr(at));
    if (!looking_at("%}", at) && !looking_at("-%}", at) && !looking_at("+%}", at)) return false;
    from = at;
    return true;
  }

  // After "{%": reads a whole raw block, if this is one.
  bool raw() {
    std::size_t end = at_;
    if (!is_tag("raw", end) || source_[end] == '+') return false;
    // Unlike other blocks, a raw block does not remove a newline after it.
    skip_to(end);
    const bool trims = source_[at_] == '-';
    skip_to(at_ + (trims ? 3 : 2));
    if (trims) skip_to(at_ + leading_space(source_.substr(at_)));
    starts_line_ = source_[at_ - 1] == '\n';
    for (std::size_t mark = source_.find("{%", at_); mark != std::string_view::npos;
         mark = source_.find("{%", mark + 1)) {
      const char sign = mark + 2 < source_.size() ? source_[mark + 2] : '\0';
      std::size_t close = mark + 2 + (sign == '-' || sign == '+' ? 1 : 0);
      if (!is_tag("endraw", close)) continue;
      add_data(text_before(mark, '%', sign));
      skip_to(close);
      skip_end("%}");
      return true;
    }
    fail("expected {% endraw %}, found none");
  }

  // Reads the tokens of an expression or a statement, up to its end mark.
  void inside(std::string_view end, TokenKind end_kind) {
    std::string open;  // brackets; "}}" inside them does not end an expression
    for (;;) {
      skip_to(at_ + leading_space(source_.substr(at_)));
      if (at_ >= source_.size())
        fail(fmt::format("expected {}, found the end of the template", end));
      const int line = line_;
      if (open.empty() && skip_end(end)) {
        tokens_.push_back({end_kind, std::string(end), line});
        return;
      }
      const char c = source_[at_];
      if (is_ascii_digit(c)) {
        number();
      } else if (is_name_character(c)) {
        name();
      } else if (c == '\'' || c == '"') {
        string();
      } else {
        symbol(open);
      }
    }
  }

  void name() {
    std::size_t end = at_;
    while (end < source_.size() && is_name_character(source_[end])) ++end;
    add(TokenKind::Name, source_.substr(at_, end - at_));
    at_ = end;
  }

  std::size_t digits(std::size_t from) const {
    while (from < source_.size() && (is_ascii_digit(source_[from]) || source_[from] == '_')) ++from;
    return from;
  }

  void number() {
    const bool after_dot = at_ > 0 && source_[at_ - 1] == '.';  // x.0.1 does not contain 0.1
    std::size_t end = digits(at_);
    bool is_float = false;
    const auto digit_at = [&](std::size_t i) {
      return i < source_.size() && is_ascii_digit(source_[i]);
    };
    if (!after_dot && looking_at(".", end) && digit_at(end + 1)) {
      end = digits(end + 1);
      is_float = true;
    }
    if (!after_dot && (looking_at("e", end) || looking_at("E", end))) {
      const bool is_signed = looking_at("+", end + 1) || looking_at("-", end + 1);
      const std::size_t exponent = end + (is_signed ? 2 : 1);
      if (digit_at(exponent)) {
        end = digits(exponent);
        is_float = true;
      }
    }
    if (end < source_.size() && is_name_character(source_[end])) {
      fail(fmt::format("expected a decimal number, found '{}'",
                       printable(source_.substr(at_, end + 1 - at_), 40)));
    }
    std::string text(source_.substr(at_, end - at_));
    if (text.find("__") != std::string::npos || text.back() == '_') {
      fail(fmt::format("expected a number, found '{}'", printable(text, 40)));
    }
    std::erase(text, '_');
    if (!is_float && text.size() > 1 && text[0] == '0' &&
        text.find_first_not_of('0') != std::string::npos) {
      fail(fmt::format("expected a number without leading zeros, found '{}'", printable(text, 40)));
    }
    add(is_float ? TokenKind::Float : TokenKind::Integer, text);
    at_ = end;
  }

  void string() {
    const char quote = source_[at_];
    std::size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size())
      fail(fmt::format("expected {} at the end of a string, found none", quote));
    const std::string_view inner = source_.substr(at_ + 1, end - at_ - 1);
    add(TokenKind::String, unescape(inner, line_));
    skip_to(end + 1);
  }

  void symbol(std::string& open) {
    for (const std::string_view op : kOperatorTokens) {
      if (!looking_at(op, at_)) continue;
      if (op == "(" || op == "[" || op == "{") {
        open += op == "(" ? ')' : op == "[" ? ']' : '}';
      } else if (op == ")" || op == "]" || op == "}") {
        if (open.empty()) fail(fmt::format("found '{}' without an opening bracket", op));
        if (open.back() != op[0]) fail(fmt::format("expected '{}', found '{}'", open.back(), op));
        open.pop_back();
      }
      add(TokenKind::Operator, op);
      at_ += op.size();
      return;
    }
    fail(fmt::format("unexpected character '{}'", printable(source_.substr(at_, 1))));
  }

  std::string owned_;
  std::string_view source_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool starts_line_ = true;  // the text at at_ begins a line
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view source) { return Lexer(source).run(); }

}  // namespace stagecraft::jinja
