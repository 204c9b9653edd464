#include "text/jinja/expression_parser.h"

#include <algorithm>
#include <charconv>

#include "base/number.h"

namespace stagecraft::jinja {
namespace {

using NodeKind = Expression::Kind;

template <class... Parts>
std::unique_ptr<Expression> make(NodeKind kind, int line, std::string text, Parts... parts) {
  auto result = std::make_unique<Expression>();
  result->kind = kind;
  result->line = line;
  result->text = std::move(text);
  (result->parts.push_back(std::move(parts)), ...);
  return result;
}

// Completes a node: computes its height and throws if it is too large.
ExpressionPtr done(std::unique_ptr<Expression> node) {
  int highest = 0;
  for (const auto& part : node->parts) highest = std::max(highest, part ? part->height : 0);
  for (const auto& argument : node->arguments) highest = std::max(highest, argument.value->height);
  node->height = highest + 1;
  if (node->height > kMaxNesting) {
    throw SyntaxFailure(
        node->line, fmt::format("an expression of more than {} nested operations", kMaxNesting));
  }
  return node;
}

template <class... Parts>
ExpressionPtr node(NodeKind kind, int line, std::string text, Parts... parts) {
  return done(make(kind, line, std::move(text), std::move(parts)...));
}

}  // namespace

// Counts how deep the parser's functions are nested, so that "((((" cannot overflow the stack.
class ExpressionParser::Level {
 public:
  explicit Level(ExpressionParser& parser) : parser_(parser) {
    if (++parser_.depth_ > kMaxNesting) {
      throw SyntaxFailure(parser_.tokens_.line(),
                          fmt::format("expressions nested deeper than {} levels", kMaxNesting));
    }
  }
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;
  ~Level() { --parser_.depth_; }

 private:
  ExpressionParser& parser_;
};

ExpressionPtr ExpressionParser::expression() {
  const Level level(*this);
  ExpressionPtr value = disjunction();
  while (tokens_.current().is_name("if")) {
    const int line = tokens_.take().line;
    ExpressionPtr condition = disjunction();
    ExpressionPtr else_value = tokens_.skip_name("else") ? expression() : nullptr;
    value = node(NodeKind::Conditional, line, "", std::move(value), std::move(condition),
                 std::move(else_value));
  }
  return value;
}

ExpressionPtr ExpressionParser::expression_without_if() { return disjunction(); }

ExpressionPtr ExpressionParser::tuple() { return tuple_of(true); }
ExpressionPtr ExpressionParser::tuple_without_if() { return tuple_of(false); }

ExpressionPtr ExpressionParser::tuple_of(bool with_if) {
  const int line = tokens_.line();
  auto result = make(NodeKind::Tuple, line, "");
  bool is_tuple = false;
  for (;;) {
    const Token& current = tokens_.current();
    if (current.kind == TokenKind::BlockEnd || current.kind == TokenKind::VariableEnd ||
        current.is_operator(")")) {
      break;  // a comma is allowed at the end
    }
    result->parts.push_back(with_if ? expression() : expression_without_if());
    if (!tokens_.skip_operator(",")) break;
    is_tuple = true;
  }
  if (is_tuple) return done(std::move(result));
  if (result->parts.empty()) tokens_.fail("an expression");
  return std::move(result->parts.front());
}

ExpressionPtr ExpressionParser::disjunction() {
  ExpressionPtr left = conjunction();
  while (tokens_.current().is_name("or")) {
    const int line = tokens_.take().line;
    left = node(NodeKind::Or, line, "", std::move(left), conjunction());
  }
  return left;
}

ExpressionPtr ExpressionParser::conjunction() {
  ExpressionPtr left = negation();
  while (tokens_.current().is_name("and")) {
    const int line = tokens_.take().line;
    left = node(NodeKind::And, line, "", std::move(left), negation());
  }
  return left;
}

ExpressionPtr ExpressionParser::negation() {
  if (!tokens_.current().is_name("not")) return comparison();
  const Level level(*this);
  const int line = tokens_.take().line;
  return node(NodeKind::Unary, line, "not", negation());
}

ExpressionPtr ExpressionParser::comparison() {
  const int line = tokens_.line();
  auto result = make(NodeKind::Compare, line, "", sum());
  for (;;) {
    const Token& token = tokens_.current();
    std::string op;
    for (const std::string_view known : {"==", "!=", "<", "<=", ">", ">="}) {
      if (token.is_operator(known)) op = known;
    }
    if (token.is_name("in")) op = "in";
    if (token.is_name("not") && tokens_.next().is_name("in")) op = "not in";
    if (op.empty()) break;
    tokens_.take();
    if (op == "not in") tokens_.take();
    result->operators.push_back(op);
    result->parts.push_back(sum());
  }
  if (result->operators.empty()) return std::move(result->parts.front());
  return done(std::move(result));
}

ExpressionPtr ExpressionParser::sum() {
  ExpressionPtr left = concatenation();
  while (tokens_.current().is_operator("+") || tokens_.current().is_operator("-")) {
    const Token op = tokens_.take();
    left = node(NodeKind::Binary, op.line, op.text, std::move(left), concatenation());
  }
  return left;
}

ExpressionPtr ExpressionParser::concatenation() {
  const int line = tokens_.line();
  auto result = make(NodeKind::Concat, line, "", product());
  while (tokens_.skip_operator("~")) result->parts.push_back(product());
  if (result->parts.size() == 1) return std::move(result->parts.front());
  return done(std::move(result));
}

ExpressionPtr ExpressionParser::product() {
  ExpressionPtr left = power();
  for (;;) {
    const Token& token = tokens_.current();
    if (!token.is_operator("*") && !token.is_operator("/") && !token.is_operator("//") &&
        !token.is_operator("%")) {
      return left;
    }
    const Token op = tokens_.take();
    left = node(NodeKind::Binary, op.line, op.text, std::move(left), power());
  }
}

ExpressionPtr ExpressionParser::power() {
  ExpressionPtr left = unary();
  while (tokens_.current().is_operator("**")) {
    const int line = tokens_.take().line;
    left = node(NodeKind::Binary, line, "**", std::move(left), unary());
  }
  return left;
}

ExpressionPtr ExpressionParser::unary(bool with_filters) {
  const Level level(*this);
  ExpressionPtr value;
  if (tokens_.current().is_operator("-") || tokens_.current().is_operator("+")) {
    const Token op = tokens_.take();
    value = node(NodeKind::Unary, op.line, op.text, unary(false));
  } else {
    value = primary();
  }
  value = postfix(std::move(value));
  return with_filters ? filters_and_tests(std::move(value)) : std::move(value);
}

ExpressionPtr ExpressionParser::primary() {
  const Token& token = tokens_.current();
  if (token.is_operator("(")) return bracketed_tuple();
  if (token.is_operator("[")) return list();
  if (token.is_operator("{")) return dict();
  if (token.kind == TokenKind::Name) {
    for (const std::string_view word : {"true", "True", "false", "False", "none", "None"}) {
      if (token.text == word) return constant();
    }
    const Token name = tokens_.take();
    names_.insert(name.text);
    return node(NodeKind::Name, name.line, name.text);
  }
  if (token.kind == TokenKind::String || token.kind == TokenKind::Integer ||
      token.kind == TokenKind::Float) {
    return constant();
  }
  tokens_.fail("an expression");
}

ExpressionPtr ExpressionParser::constant() {
  const Token token = tokens_.take();
  auto result = make(NodeKind::Constant, token.line, "");
  if (token.kind == TokenKind::String) {
    std::string text = token.text;
    while (tokens_.current().kind == TokenKind::String) text += tokens_.take().text;
    result->literal = MarkedText(text);
  } else if (token.kind == TokenKind::Integer) {
    std::int64_t value = 0;
    const char* end = token.text.data() + token.text.size();
    if (std::from_chars(token.text.data(), end, value).ec != std::errc()) {
      throw SyntaxFailure(token.line, fmt::format("expected a whole number of 63 bits, found {}",
                                                  printable(token.text, 40)));
    }
    result->literal = value;
  } else if (token.kind == TokenKind::Float) {
    result->literal = number_of(token.text).value();
  } else if (token.text == "true" || token.text == "True") {
    result->literal = true;
  } else if (token.text == "false" || token.text == "False") {
    result->literal = false;
  }
  return done(std::move(result));
}

ExpressionPtr ExpressionParser::bracketed_tuple() {
  const int line = tokens_.take().line;
  if (tokens_.skip_operator(")")) return node(NodeKind::Tuple, line, "");
  ExpressionPtr value = tuple();
  tokens_.expect_operator(")");
  return value;
}

ExpressionPtr ExpressionParser::list() {
  auto result = make(NodeKind::List, tokens_.take().line, "");
  while (!tokens_.current().is_operator("]")) {
    if (!result->parts.empty()) tokens_.expect_operator(",");
    if (tokens_.current().is_operator("]")) break;
    result->parts.push_back(expression());
  }
  tokens_.expect_operator("]");
  return done(std::move(result));
}

ExpressionPtr ExpressionParser::dict() {
  auto result = make(NodeKind::Dict, tokens_.take().line, "");
  while (!tokens_.current().is_operator("}")) {
    if (!result->parts.empty()) tokens_.expect_operator(",");
    if (tokens_.current().is_operator("}")) break;
    result->parts.push_back(expression());
    tokens_.expect_operator(":");
    result->parts.push_back(expression());
  }
  tokens_.expect_operator("}");
  return done(std::move(result));
}

ExpressionPtr ExpressionParser::postfix(ExpressionPtr value) {
  for (;;) {
    const Token& token = tokens_.current();
    if (token.is_operator(".")) {
      const int line = tokens_.take().line;
      if (tokens_.current().kind == TokenKind::Integer) {
        value = node(NodeKind::Item, line, "", std::move(value), constant());
      } else {
        value = node(NodeKind::Attribute, line, tokens_.take_name(), std::move(value));
      }
    } else if (token.is_operator("[")) {
      value = subscript(std::move(value));
    } else if (token.is_operator("(")) {
      value = call(std::move(value));
    } else {
      return value;
    }
  }
}

ExpressionPtr ExpressionParser::subscript(ExpressionPtr value) {
  const int line = tokens_.take().line;
  const auto ends_here = [&] {
    return tokens_.current().is_operator("]") || tokens_.current().is_operator(":");
  };
  ExpressionPtr first = ends_here() ? nullptr : expression();
  if (first && tokens_.skip_operator("]")) {
    return node(NodeKind::Item, line, "", std::move(value), std::move(first));
  }
  tokens_.expect_operator(":");
  ExpressionPtr last = ends_here() ? nullptr : expression();
  ExpressionPtr step;
  if (tokens_.skip_operator(":") && !ends_here()) step = expression();
  tokens_.expect_operator("]");
  return node(NodeKind::Slice, line, "", std::move(value), std::move(first), std::move(last),
              std::move(step));
}

ExpressionPtr ExpressionParser::call(ExpressionPtr value) {
  auto result = make(NodeKind::Call, tokens_.line(), "", std::move(value));
  result->arguments = arguments();
  return done(std::move(result));
}

std::vector<Argument> ExpressionParser::arguments() {
  tokens_.expect_operator("(");
  std::vector<Argument> result;
  int phase = 0;  // order: by place, by name, **
  while (!tokens_.current().is_operator(")")) {
    if (!result.empty()) tokens_.expect_operator(",");
    if (tokens_.current().is_operator(")")) break;
    Argument argument;
    if (tokens_.skip_operator("**")) {
      argument.stars = 2;
    } else if (tokens_.skip_operator("*")) {
      argument.stars = 1;
    } else if (tokens_.current().kind == TokenKind::Name && tokens_.next().is_operator("=")) {
      argument.name = tokens_.take().text;
      tokens_.take();
    }
    const int kind = argument.stars == 2 ? 2 : argument.name.empty() ? 0 : 1;
    if (kind < phase) tokens_.fail("positional arguments before named ones");
    phase = kind;
    argument.value = expression();
    result.push_back(std::move(argument));
  }
  tokens_.expect_operator(")");
  return result;
}

ExpressionPtr ExpressionParser::filters_and_tests(ExpressionPtr value) {
  for (;;) {
    const Token& token = tokens_.current();
    if (token.is_operator("|")) {
      value = filters_of(std::move(value));
    } else if (token.is_name("is")) {
      value = test(std::move(value));
    } else if (token.is_operator("(")) {
      value = call(std::move(value));
    } else {
      return value;
    }
  }
}

ExpressionPtr ExpressionParser::filters_of(ExpressionPtr value) {
  while (tokens_.skip_operator("|")) value = filter(std::move(value));
  return value;
}

ExpressionPtr ExpressionParser::filter_chain() { return filters_of(filter(nullptr)); }

ExpressionPtr ExpressionParser::filter(ExpressionPtr value) {
  const int line = tokens_.line();
  auto result = make(NodeKind::Filter, line, dotted_name(), std::move(value));
  if (tokens_.current().is_operator("(")) result->arguments = arguments();
  return done(std::move(result));
}

std::string ExpressionParser::dotted_name() {
  std::string name = tokens_.take_name();
  while (tokens_.skip_operator(".")) name += "." + tokens_.take_name();
  return name;
}

ExpressionPtr ExpressionParser::test(ExpressionPtr value) {
  const int line = tokens_.take().line;
  const bool negated = tokens_.skip_name("not");
  auto result = make(NodeKind::Test, line, dotted_name(), std::move(value));
  const Token& token = tokens_.current();
  const bool is_value = token.kind == TokenKind::Name || token.kind == TokenKind::String ||
                        token.kind == TokenKind::Integer || token.kind == TokenKind::Float ||
                        token.is_operator("[") || token.is_operator("{");
  if (token.is_operator("(")) {
    result->arguments = arguments();
  } else if (is_value && !token.is_name("else") && !token.is_name("or") && !token.is_name("and")) {
    if (token.is_name("is")) tokens_.fail("one test at a time");
    const Level level(*this);
    Argument argument;  // x is equalto 3
    argument.value = postfix(primary());
    result->arguments.push_back(std::move(argument));
  }
  ExpressionPtr tested = done(std::move(result));
  return negated ? node(NodeKind::Unary, line, "not", std::move(tested)) : std::move(tested);
}

}  // namespace stagecraft::jinja
