#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "text/marked_text.h"

// The tree of a template: made by the parser, executed by the interpreter.
namespace stagecraft::jinja {

struct Expression;
using ExpressionPtr = std::unique_ptr<const Expression>;

struct Argument {
  std::string name;  // empty: positional
  int stars = 0;     // 1: *list, 2: **dict
  ExpressionPtr value;
};

struct Expression {
  enum class Kind {
    Constant,     // literal
    Name,         // text
    List,         // parts
    Tuple,        // parts
    Dict,         // parts: key, value, key, value ...
    Attribute,    // parts[0].text
    Item,         // parts[0][parts[1]]
    Slice,        // parts[0][parts[1] : parts[2] : parts[3]], any of the three may be null
    Call,         // parts[0](arguments)
    Filter,       // parts[0] | text(arguments); parts[0] is null in {% set x | filter %}
    Test,         // parts[0] is text(arguments)
    Unary,        // text is "-", "+" or "not"
    Binary,       // text is + - * / // % **
    And,          // parts[0] and parts[1]
    Or,           // parts[0] or parts[1]
    Concat,       // all parts, joined by ~
    Compare,      // parts[0] operators[0] parts[1] operators[1] ...
    Conditional,  // parts[0] if parts[1] else parts[2], which may be null
  };

  Kind kind = Kind::Constant;
  int line = 0;
  int height = 1;  // of this tree: 1 more than the highest of its parts
  std::string text;
  std::variant<std::monostate, bool, std::int64_t, double, MarkedText> literal;  // monostate: none
  std::vector<ExpressionPtr> parts;
  std::vector<std::string> operators;
  std::vector<Argument> arguments;
};

// The left side of "=", or the part between "for" and "in".
struct Target {
  std::string name;           // a variable, or with `attribute` a namespace
  std::string attribute;      // "ns.attribute"
  std::vector<Target> parts;  // if not empty, a list of targets: a, b
};

struct Statement;
using Block = std::vector<Statement>;

struct Parameter {
  std::string name;
  ExpressionPtr default_value;  // may be null
};

// A body with parameters: of a macro, or of a {% call %}, which passes it to a macro.
struct MacroBody {
  std::string name;
  std::vector<Parameter> parameters;
  bool takes_more = false;        // its body uses varargs
  bool takes_more_named = false;  // its body uses kwargs
  bool takes_caller = false;      // its body uses caller
  Block body;
};

struct DataStatement {
  std::string text;
};
struct OutputStatement {  // {{ value }}
  ExpressionPtr value;
};
struct IfStatement {
  struct Branch {
    ExpressionPtr condition;  // null: else
    Block body;
  };
  std::vector<Branch> branches;
};
struct ForStatement {
  Target target;
  ExpressionPtr sequence;
  ExpressionPtr condition;  // may be null: {% for x in y if condition %}
  Block body;
  Block else_body;
};
struct SetStatement {  // {% set target = value %}
  Target target;
  ExpressionPtr value;
};
struct SetBlockStatement {  // {% set target | filter %} body {% endset %}
  Target target;
  ExpressionPtr filter;  // may be null
  Block body;
};
struct FilterStatement {  // {% filter name(arguments) %} body {% endfilter %}
  ExpressionPtr filter;
  Block body;
};
struct WithStatement {
  std::vector<std::pair<Target, ExpressionPtr>> values;
  Block body;
};
struct MacroStatement {
  std::shared_ptr<const MacroBody> macro;
};
struct CallStatement {  // {% call(parameters) macro(...) %} body {% endcall %}
  ExpressionPtr call;
  std::shared_ptr<const MacroBody> caller;
};
struct GenerationStatement {  // marks answers for training; here its body is simply run
  Block body;
};
struct BreakStatement {};
struct ContinueStatement {};

struct Statement {
  int line = 0;
  std::variant<DataStatement, OutputStatement, IfStatement, ForStatement, SetStatement,
               SetBlockStatement, FilterStatement, WithStatement, MacroStatement, CallStatement,
               GenerationStatement, BreakStatement, ContinueStatement>
      is;
};

}  // namespace stagecraft::jinja
