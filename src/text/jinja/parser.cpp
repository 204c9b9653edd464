#include "text/jinja/parser.h"

#include <algorithm>
#include <initializer_list>
#include <set>
#include <utility>

#include "text/jinja/expression_parser.h"

namespace stagecraft::jinja {
namespace {

class Parser {
 public:
  explicit Parser(std::string_view source) : tokens_(tokenize(source)), expressions_(tokens_) {}

  Parsed run() {
    Block block = statements({});
    if (tokens_.current().kind != TokenKind::End) unknown_tag();
    return {std::move(block), expressions_.take_names()};
  }

 private:
  using Tags = std::initializer_list<std::string_view>;

  // Reads statements up to a tag {% name that is one of `ends`, or to the end of the template. The
  // name is left as the current token.
  Block statements(Tags ends) {
    if (++depth_ > kMaxNesting) {
      throw SyntaxFailure(tokens_.line(),
                          fmt::format("blocks nested deeper than {} levels", kMaxNesting));
    }
    Block block;
    for (;;) {
      const Token& token = tokens_.current();
      if (token.kind == TokenKind::Data) {
        block.push_back({token.line, DataStatement{tokens_.take().text}});
      } else if (token.kind == TokenKind::VariableBegin) {
        tokens_.take();
        const int line = tokens_.line();
        block.push_back({line, OutputStatement{expressions_.tuple()}});
        if (!tokens_.skip(TokenKind::VariableEnd)) tokens_.fail("}}");
      } else if (token.kind == TokenKind::BlockBegin) {
        tokens_.take();
        if (at_name(ends)) break;
        block.push_back(statement());
        tokens_.expect_block_end();
      } else {
        if (ends.size() > 0) tokens_.fail(fmt::format("{{% {} %}}", *(ends.end() - 1)));
        break;
      }
    }
    --depth_;
    return block;
  }

  // Reads the body of a block, from the end of its first tag up to its last tag. Leaves the last
  // "%}".
  Block body_until(std::string_view end) {
    tokens_.expect_block_end();
    Block block = statements({end});
    tokens_.expect_name(end);
    return block;
  }

  bool at_name(Tags names) const {
    return std::any_of(names.begin(), names.end(),
                       [this](std::string_view name) { return tokens_.current().is_name(name); });
  }

  [[noreturn]] void unknown_tag() const { tokens_.fail("a statement"); }

  Statement statement() {
    const int line = tokens_.line();
    const std::string tag = tokens_.take_name();
    if (tag == "if") return {line, if_statement()};
    if (tag == "for") return {line, for_statement()};
    if (tag == "set") return set_statement(line);
    if (tag == "filter") {
      ExpressionPtr filter = expressions_.filter_chain();
      return {line, FilterStatement{std::move(filter), outside_loops("endfilter")}};
    }
    if (tag == "with") return {line, with_statement()};
    if (tag == "macro") return {line, macro_statement()};
    if (tag == "call") return {line, call_statement()};
    if (tag == "generation") return {line, GenerationStatement{outside_loops("endgeneration")}};
    if (tag == "break" || tag == "continue") {
      if (loops_ == 0) {
        throw SyntaxFailure(
            line, fmt::format("expected {{% {} %}} inside a loop, found it outside", tag));
      }
      if (tag == "break") return {line, BreakStatement{}};
      return {line, ContinueStatement{}};
    }
    for (const std::string_view refused :
         {"include", "import", "from", "extends", "block", "autoescape"}) {
      if (tag != refused) continue;
      throw SyntaxFailure(
          line, fmt::format("{{% {} %}} is not supported: a chat template is a single file", tag));
    }
    throw SyntaxFailure(line,
                        fmt::format("expected a statement, found {{% {} %}}", printable(tag, 40)));
  }

  // Reads a body in which `break` and `continue` cannot refer to a loop outside.
  Block outside_loops(std::string_view end) {
    const int loops = std::exchange(loops_, 0);
    Block block = body_until(end);
    loops_ = loops;
    return block;
  }

  IfStatement if_statement() {
    IfStatement result;
    for (;;) {
      ExpressionPtr condition = expressions_.tuple_without_if();
      tokens_.expect_block_end();
      result.branches.push_back({std::move(condition), statements({"elif", "else", "endif"})});
      if (!tokens_.skip_name("elif")) break;
    }
    if (tokens_.skip_name("else")) {
      tokens_.expect_block_end();
      result.branches.push_back({nullptr, statements({"endif"})});
    }
    tokens_.expect_name("endif");
    return result;
  }

  ForStatement for_statement() {
    ForStatement result;
    result.target = target();
    tokens_.expect_name("in");
    result.sequence = expressions_.tuple_without_if();
    if (tokens_.skip_name("if")) result.condition = expressions_.expression();
    if (tokens_.current().is_name("recursive")) {
      throw SyntaxFailure(tokens_.line(), "{% for ... recursive %} is not supported");
    }
    tokens_.expect_block_end();
    ++loops_;
    result.body = statements({"endfor", "else"});
    --loops_;
    if (tokens_.skip_name("else")) {
      tokens_.expect_block_end();
      result.else_body = statements({"endfor"});
    }
    tokens_.expect_name("endfor");
    return result;
  }

  Statement set_statement(int line) {
    Target where = target(true);
    if (tokens_.skip_operator("=")) {
      return {line, SetStatement{std::move(where), expressions_.tuple()}};
    }
    ExpressionPtr filter = expressions_.filters_of(nullptr);
    return {line, SetBlockStatement{std::move(where), std::move(filter), outside_loops("endset")}};
  }

  WithStatement with_statement() {
    WithStatement result;
    while (tokens_.current().kind != TokenKind::BlockEnd) {
      if (!result.values.empty()) tokens_.expect_operator(",");
      Target where = target_part(false);
      tokens_.expect_operator("=");
      result.values.emplace_back(std::move(where), expressions_.expression());
    }
    result.body = body_until("endwith");
    return result;
  }

  MacroStatement macro_statement() {
    auto macro = std::make_shared<MacroBody>();
    macro->name = variable_name();
    parameters(*macro);
    finish_macro(*macro, "endmacro");
    return {std::move(macro)};
  }

  CallStatement call_statement() {
    auto caller = std::make_shared<MacroBody>();
    caller->name = "caller";
    if (tokens_.current().is_operator("(")) parameters(*caller);
    CallStatement result;
    result.call = expressions_.unary(false);
    if (result.call->kind != Expression::Kind::Call) {
      throw SyntaxFailure(result.call->line, "expected a call in {% call %}");
    }
    finish_macro(*caller, "endcall");
    result.caller = std::move(caller);
    return result;
  }

  void finish_macro(MacroBody& macro, std::string_view end) {
    const std::size_t begin = tokens_.position();
    macro.body = outside_loops(end);
    macro.takes_more = tokens_.mentioned_since(begin, "varargs");
    macro.takes_more_named = tokens_.mentioned_since(begin, "kwargs");
    macro.takes_caller = tokens_.mentioned_since(begin, "caller");
  }

  void parameters(MacroBody& macro) {
    tokens_.expect_operator("(");
    std::set<std::string> names;
    while (!tokens_.current().is_operator(")")) {
      if (!macro.parameters.empty()) tokens_.expect_operator(",");
      Parameter parameter{variable_name(), nullptr};
      if (!names.insert(parameter.name).second) tokens_.fail("a different name for each parameter");
      if (tokens_.skip_operator("=")) {
        parameter.default_value = expressions_.expression();
      } else if (!macro.parameters.empty() && macro.parameters.back().default_value) {
        tokens_.fail("a default value (the parameter before has one)");
      }
      macro.parameters.push_back(std::move(parameter));
    }
    tokens_.expect_operator(")");
  }

  std::string variable_name() {
    for (const std::string_view word : {"true", "false", "none", "True", "False", "None"}) {
      if (tokens_.current().is_name(word)) tokens_.fail("a name to assign to");
    }
    return tokens_.take_name();
  }

  Target target(bool with_namespace = false) {
    Target first = target_part(with_namespace);
    if (!tokens_.current().is_operator(",")) return first;
    Target result;
    result.parts.push_back(std::move(first));
    while (tokens_.skip_operator(",")) {
      if (tokens_.current().is_name("in")) break;  // for a, in x
      result.parts.push_back(target_part(with_namespace));
    }
    return result;
  }

  Target target_part(bool with_namespace) {
    if (tokens_.skip_operator("(")) {
      if (++depth_ > kMaxNesting) tokens_.fail("fewer nested brackets");
      Target inner = target(with_namespace);
      --depth_;
      tokens_.expect_operator(")");
      return inner;
    }
    Target result;
    result.name = variable_name();
    if (with_namespace && tokens_.skip_operator(".")) result.attribute = tokens_.take_name();
    return result;
  }

  TokenStream tokens_;
  ExpressionParser expressions_;
  int depth_ = 0;  // number of open blocks and target brackets
  int loops_ = 0;  // number of open loops that a break could leave
};

}  // namespace

Parsed parse(std::string_view source) { return Parser(source).run(); }

}  // namespace stagecraft::jinja
