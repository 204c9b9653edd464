#pragma once

#include <string_view>
#include <vector>

#include "base/error.h"
#include "text/jinja/lexer.h"

namespace stagecraft::jinja {

// The tokens of a template, one at a time.
class TokenStream {
 public:
  explicit TokenStream(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& current() const { return tokens_[at_]; }
  const Token& next() const { return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_]; }
  int line() const { return current().line; }

  Token take() {
    const Token& token = current();
    if (token.kind != TokenKind::End) ++at_;
    return token;
  }
  bool skip_operator(std::string_view op) { return skip_if(current().is_operator(op)); }
  bool skip_name(std::string_view name) { return skip_if(current().is_name(name)); }
  bool skip(TokenKind kind) { return skip_if(current().kind == kind); }

  void expect_operator(std::string_view op) {
    if (!skip_operator(op)) fail(fmt::format("'{}'", op));
  }
  void expect_name(std::string_view name) {
    if (!skip_name(name)) fail(fmt::format("'{}'", name));
  }
  void expect_block_end() {
    if (!skip(TokenKind::BlockEnd)) fail("%}");
  }
  std::string take_name() {
    if (current().kind != TokenKind::Name) fail("a name");
    return take().text;
  }

  std::size_t position() const { return at_; }
  // Whether one of the tokens from `begin` up to the current one is this name.
  bool mentioned_since(std::size_t begin, std::string_view name) const {
    for (std::size_t i = begin; i < at_; ++i) {
      if (tokens_[i].is_name(name)) return true;
    }
    return false;
  }

  [[noreturn]] void fail(const std::string& expected) const {
    const bool is_text = current().kind == TokenKind::String || current().kind == TokenKind::Data;
    const std::string found = printable(current().text, 40);
    throw SyntaxFailure(line(), fmt::format("expected {}, found {}", expected,
                                            is_text ? "text '" + found + "'" : "'" + found + "'"));
  }

 private:
  bool skip_if(bool condition) {
    if (condition) ++at_;
    return condition;
  }

  std::vector<Token> tokens_;  // the last is End; at_ never moves past it
  std::size_t at_ = 0;
};

}  // namespace stagecraft::jinja
