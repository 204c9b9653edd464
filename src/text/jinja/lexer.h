#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/failure.h"

namespace stagecraft::jinja {

enum class TokenKind {
  Data,  // text outside of all tags, as it will be printed
  BlockBegin,
  BlockEnd,
  VariableBegin,
  VariableEnd,
  Name,
  String,  // unescaped
  Integer,
  Float,
  Operator,
  End,
};

struct Token {
  TokenKind kind;
  std::string text;
  int line;

  bool is_operator(std::string_view op) const { return kind == TokenKind::Operator && text == op; }
  bool is_name(std::string_view name) const { return kind == TokenKind::Name && text == name; }
};

// Splits a template into tokens; the last is End. Comments are removed and raw blocks become Data.
// White space is already removed as tags ask for it ({%-, -%}) and as transformers does: the
// newline after a block (trim_blocks) and the blanks before a block on its line (lstrip_blocks).
// Throws Failure with the line.
std::vector<Token> tokenize(std::string_view source);

}  // namespace stagecraft::jinja
