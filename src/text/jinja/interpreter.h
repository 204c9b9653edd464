#pragma once

#include <map>

#include "text/jinja/runtime.h"
#include "text/jinja/tree.h"

namespace stagecraft::jinja {

// The variables of one block and, through `outer`, of those around it. A loop's turn, a macro's
// call and a {% with %} each have their own: what is set inside is not seen outside.
class Scope {
 public:
  explicit Scope(Scope* outer = nullptr) : outer_(outer) {}

  const Value* find(std::string_view name) const;
  void set(const std::string& name, const Value& value);
  void clear() { values_.clear(); }

  // Something defined here looks here when it is called: it and those around it must stay.
  void keep();
  bool is_kept() const { return is_kept_; }

 private:
  Scope* outer_;
  std::map<std::string, Value, std::less<>> values_;  // a template may set thousands
  bool is_kept_ = false;
};

// Walks the tree of a template: statements here, expressions in evaluate.cpp.
class Interpreter {
 public:
  explicit Interpreter(Runtime& runtime) : runtime_(runtime) {}

  // What the template prints with these variables. Throws Failure; line() says where.
  MarkedText render(const Block& block, Scope& variables);
  int line() const { return line_; }

  // The body of a macro or of a {% call %}, its arguments in their places; `outer` is where it was
  // defined. What it prints.
  Value call_macro(const MacroBody& macro, Scope& outer, const Arguments& arguments);

 private:
  enum class Flow { Next, Break, Continue };

  Flow run(const Block& block, Scope& scope);
  Flow run(const Statement& statement, Scope& scope);
  Flow run_if(const IfStatement& statement, Scope& scope);
  Flow run_for(const ForStatement& statement, Scope& scope);
  Value passing(const ForStatement& statement, const Value& sequence, Scope& scope);
  void run_call(const CallStatement& statement, Scope& scope);
  // What `block` prints, instead of printing it.
  Value captured(const Block& block, Scope& scope);
  void print(const MarkedText& text);
  void assign(const Target& target, const Value& value, Scope& scope);
  Scope& new_scope(Scope& outer);

  Value evaluate(const Expression& expression, const Scope& scope);
  Value evaluate_parts(const Expression& expression, const Scope& scope);
  Value name(const Expression& expression, const Scope& scope);
  Value constant(const Expression& expression);
  Value unary(const Expression& expression, const Scope& scope);
  Value comparison(const Expression& expression, const Scope& scope);
  Value dict(const Expression& expression, const Scope& scope);
  Value call(const Expression& expression, const Scope& scope, const Value* caller);
  // `input`: what {% set x | filter %} begins with.
  Value filter(const Expression& expression, const Scope& scope, const Value* input);
  Values values_of(const std::vector<ExpressionPtr>& expressions, const Scope& scope);
  Arguments arguments_of(const Expression& expression, const Scope& scope);

  Runtime& runtime_;
  MarkedText* out_ = nullptr;
  int line_ = 1;
};

}  // namespace stagecraft::jinja
