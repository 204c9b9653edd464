#pragma once

#include <map>

#include "text/jinja/runtime.h"
#include "text/jinja/tree.h"

namespace stagecraft::jinja {

// The variables of one block and, through `outer`, of the blocks around it. Each loop iteration,
// macro call and {% with %} has its own scope: a variable that is set inside is not visible
// outside.
class Scope {
 public:
  explicit Scope(Scope* outer = nullptr) : outer_(outer) {}

  const Value* find(std::string_view name) const;
  // Counts the memory of a name that the scope did not have.
  void set(Runtime& runtime, const std::string& name, const Value& value);
  void clear() { values_.clear(); }

  // A macro that is defined here looks up variables here when it is called. So this scope and those
  // around it must not be cleared and used again.
  void keep();
  bool is_kept() const { return is_kept_; }

 private:
  Scope* outer_;
  std::map<std::string, Value, std::less<>> values_;  // a template may set thousands
  std::size_t most_ = 0;  // the most variables so far: clear() does not give their bytes back
  bool is_kept_ = false;
};

// Executes the tree of a template: statements here, expressions in evaluate.cpp.
class Interpreter {
 public:
  explicit Interpreter(Runtime& runtime) : runtime_(runtime) {}

  // Returns what the template prints with these variables. Throws Failure; line() is the line of
  // it.
  MarkedText render(const Block& block, Scope& variables);
  int line() const { return line_; }

  // Runs the body of a macro or of a {% call %} and returns what it prints. `outer` is the scope in
  // which it was defined.
  Value call_macro(const MacroBody& macro, Scope& outer, const Arguments& arguments);

 private:
  enum class Flow { Next, Break, Continue };

  Flow run(const Block& block, Scope& scope);
  Flow run(const Statement& statement, Scope& scope);
  Flow run_if(const IfStatement& statement, Scope& scope);
  Flow run_for(const ForStatement& statement, Scope& scope);
  Value passing(const ForStatement& statement, const Value& sequence, Scope& scope);
  void run_call(const CallStatement& statement, Scope& scope);
  // Runs `block` and returns what it prints.
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
  // `input`: in {% set x | filter %}, the value of the block.
  Value filter(const Expression& expression, const Scope& scope, const Value* input);
  Values values_of(const std::vector<ExpressionPtr>& expressions, const Scope& scope);
  Arguments arguments_of(const Expression& expression, const Scope& scope);

  Runtime& runtime_;
  MarkedText* out_ = nullptr;
  int line_ = 1;
};

}  // namespace stagecraft::jinja
