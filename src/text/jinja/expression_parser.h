#pragma once

#include "text/jinja/parser.h"
#include "text/jinja/token_stream.h"
#include "text/jinja/tree.h"

namespace stagecraft::jinja {

// Parses expressions. Each function is one level of the grammar, from the weakest to the strongest
// binding:
//
//   a if b else c | or | and | not | == != < > <= >= in | + - | ~ | * / // % | ** | - + (unary)
//   | .name [item] (call) | filter, is test
class ExpressionParser {
 public:
  explicit ExpressionParser(TokenStream& tokens) : tokens_(tokens) {}

  ExpressionPtr expression();
  ExpressionPtr expression_without_if();  // after "in" of a for: "if" then begins a condition
  ExpressionPtr tuple();                  // a, b, c or one expression
  ExpressionPtr tuple_without_if();
  ExpressionPtr filters_of(ExpressionPtr value);  // | filter | filter; `value` may be null
  ExpressionPtr filter(ExpressionPtr value);      // the filter whose name comes next
  ExpressionPtr filter_chain();                   // filter | filter, of a block
  ExpressionPtr unary(bool with_filters = true);

  Names take_names() { return std::move(names_); }  // of the variables that the expressions read

 private:
  class Level;

  ExpressionPtr disjunction();
  ExpressionPtr conjunction();
  ExpressionPtr negation();
  ExpressionPtr comparison();
  ExpressionPtr sum();
  ExpressionPtr concatenation();
  ExpressionPtr product();
  ExpressionPtr power();
  ExpressionPtr primary();
  ExpressionPtr postfix(ExpressionPtr value);
  ExpressionPtr filters_and_tests(ExpressionPtr value);
  ExpressionPtr subscript(ExpressionPtr value);
  ExpressionPtr test(ExpressionPtr value);
  ExpressionPtr call(ExpressionPtr value);
  ExpressionPtr bracketed_tuple();
  ExpressionPtr list();
  ExpressionPtr dict();
  ExpressionPtr constant();
  ExpressionPtr tuple_of(bool with_if);
  std::vector<Argument> arguments();
  std::string dotted_name();

  TokenStream& tokens_;
  Names names_;
  int depth_ = 0;
};

}  // namespace stagecraft::jinja
