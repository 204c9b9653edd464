#include "text/jinja/interpreter.h"

#include <algorithm>

#include "base/error.h"
#include "text/jinja/builtins.h"
#include "text/jinja/operations.h"
#include "text/jinja/printing.h"

namespace stagecraft::jinja {
namespace {

// The variable `loop` inside a {% for %}.
class Loop : public Object {
 public:
  explicit Loop(const Values& values) : values_(values) {}

  std::string name() const override { return "loop"; }

  void go_to(std::size_t index) { index_ = index; }

  std::optional<Value> attribute(Runtime& runtime, std::string_view name) override;

 private:
  const Values& values_;
  std::size_t index_ = 0;
};

std::optional<Value> Loop::attribute(Runtime& runtime, std::string_view name) {
  const auto number = [](std::size_t n) { return Value::of_integer(static_cast<std::int64_t>(n)); };
  if (name == "index") return number(index_ + 1);
  if (name == "index0") return number(index_);
  if (name == "revindex") return number(values_.size() - index_);
  if (name == "revindex0") return number(values_.size() - index_ - 1);
  if (name == "first") return Value::of_bool(index_ == 0);
  if (name == "last") return Value::of_bool(index_ + 1 == values_.size());
  if (name == "length") return number(values_.size());
  if (name == "depth") return number(1);  // for ... recursive is refused
  if (name == "depth0") return number(0);
  if (name == "previtem") {
    return index_ == 0 ? runtime.undefined("'loop.previtem' of the first element")
                       : values_[index_ - 1];
  }
  if (name == "nextitem") {
    return index_ + 1 == values_.size() ? runtime.undefined("'loop.nextitem' of the last element")
                                        : values_[index_ + 1];
  }
  return std::nullopt;
}

class Macro : public Object {
 public:
  Macro(Interpreter& interpreter, std::shared_ptr<const MacroBody> body, Scope& outer)
      : interpreter_(interpreter), body_(std::move(body)), outer_(outer) {
    outer.keep();
  }
  std::string name() const override { return "macro " + body_->name; }
  bool is_callable() const override { return true; }
  Value call(Runtime&, const Arguments& arguments) override {
    return interpreter_.call_macro(*body_, outer_, arguments);
  }

 private:
  Interpreter& interpreter_;
  std::shared_ptr<const MacroBody> body_;
  Scope& outer_;
};

// Removes the argument of this name from `named` and returns it; nullopt if there is none.
std::optional<Value> take(std::vector<std::pair<std::string, Value>>& named,
                          std::string_view name) {
  const auto found = std::ranges::find(named, name, [](const auto& pair) { return pair.first; });
  if (found == named.end()) return std::nullopt;
  const Value value = found->second;
  named.erase(found);
  return value;
}

}  // namespace

const Value* Scope::find(std::string_view name) const {
  for (const Scope* scope = this; scope != nullptr; scope = scope->outer_) {
    const auto found = scope->values_.find(name);
    if (found != scope->values_.end()) return &found->second;
  }
  return nullptr;
}

void Scope::set(Runtime& runtime, const std::string& name, const Value& value) {
  constexpr std::size_t kNode = 4 * sizeof(void*) + sizeof(std::string) + sizeof(Value);
  values_.insert_or_assign(name, value);
  if (values_.size() <= most_) return;
  most_ = values_.size();
  runtime.use_bytes(kNode + name.size());
}

void Scope::keep() {
  for (Scope* scope = this; scope != nullptr; scope = scope->outer_) scope->is_kept_ = true;
}

MarkedText Interpreter::render(const Block& block, Scope& variables) {
  MarkedText text;
  out_ = &text;
  run(block, variables);
  return text;
}

// Scopes live as long as the values, because a macro may be called after the end of its scope.
Scope& Interpreter::new_scope(Scope& outer) {
  return runtime_.keep(std::make_unique<Scope>(&outer));
}

void Interpreter::print(const MarkedText& text) {
  runtime_.use_bytes(text.size() + sizeof(TextSpan) * text.typed_spans().size());
  out_->append(text);
}

Value Interpreter::captured(const Block& block, Scope& scope) {
  MarkedText text;
  MarkedText* const before = std::exchange(out_, &text);
  run(block, scope);
  out_ = before;
  return runtime_.text(std::move(text));
}

Interpreter::Flow Interpreter::run(const Block& block, Scope& scope) {
  const Runtime::Level level(runtime_);
  for (const Statement& statement : block) {
    runtime_.step();
    line_ = statement.line;
    const Flow flow = run(statement, scope);
    if (flow != Flow::Next) return flow;
  }
  return Flow::Next;
}

Interpreter::Flow Interpreter::run(const Statement& statement, Scope& scope) {
  const auto& is = statement.is;
  if (const auto* data = std::get_if<DataStatement>(&is)) {
    print(MarkedText(data->text));
  } else if (const auto* output = std::get_if<OutputStatement>(&is)) {
    print(to_text(runtime_, evaluate(*output->value, scope)));
  } else if (const auto* if_ = std::get_if<IfStatement>(&is)) {
    return run_if(*if_, scope);
  } else if (const auto* for_ = std::get_if<ForStatement>(&is)) {
    return run_for(*for_, scope);
  } else if (const auto* set = std::get_if<SetStatement>(&is)) {
    assign(set->target, evaluate(*set->value, scope), scope);
  } else if (const auto* set_block = std::get_if<SetBlockStatement>(&is)) {
    const Value text = captured(set_block->body, new_scope(scope));
    assign(set_block->target, set_block->filter ? filter(*set_block->filter, scope, &text) : text,
           scope);
  } else if (const auto* filtered = std::get_if<FilterStatement>(&is)) {
    const Value text = captured(filtered->body, new_scope(scope));
    const Value result = filter(*filtered->filter, scope, &text);
    if (!result.is(Value::Kind::String)) {
      throw Failure("{{% filter %}}: expected a filter that makes a string, found {}",
                    kind_name(result));
    }
    print(*result.text);
  } else if (const auto* with = std::get_if<WithStatement>(&is)) {
    Scope& inner = new_scope(scope);
    for (const auto& [target, value] : with->values) {
      assign(target, evaluate(*value, scope), inner);
    }
    return run(with->body, inner);
  } else if (const auto* macro = std::get_if<MacroStatement>(&is)) {
    scope.set(runtime_, macro->macro->name, runtime_.object<Macro>(*this, macro->macro, scope));
  } else if (const auto* call = std::get_if<CallStatement>(&is)) {
    run_call(*call, scope);
  } else if (const auto* generation = std::get_if<GenerationStatement>(&is)) {
    print(*captured(generation->body, new_scope(scope)).text);
  } else {
    return std::holds_alternative<BreakStatement>(is) ? Flow::Break : Flow::Continue;
  }
  return Flow::Next;
}

Interpreter::Flow Interpreter::run_if(const IfStatement& statement, Scope& scope) {
  for (const auto& branch : statement.branches) {
    if (!branch.condition || is_true(evaluate(*branch.condition, scope))) {
      return run(branch.body, scope);
    }
  }
  return Flow::Next;
}

// The elements that pass the condition of {% for x in sequence if condition %}.
Value Interpreter::passing(const ForStatement& statement, const Value& sequence, Scope& scope) {
  Values chosen;
  Scope& turn = new_scope(scope);
  for (const Value& value : elements(runtime_, sequence)) {
    turn.clear();
    assign(statement.target, value, turn);
    if (is_true(evaluate(*statement.condition, turn))) chosen.push_back(value);
  }
  return runtime_.list(std::move(chosen));
}

Interpreter::Flow Interpreter::run_for(const ForStatement& statement, Scope& scope) {
  const Value sequence = evaluate(*statement.sequence, scope);
  // The values outlive the loop, because a template may store `loop` in a namespace.
  const Values& values = *(statement.condition      ? passing(statement, sequence, scope)
                           : sequence.is_sequence() ? sequence
                                                    : runtime_.list(elements(runtime_, sequence)))
                              .list;
  if (values.empty()) return run(statement.else_body, new_scope(scope));
  const Value loop = runtime_.object<Loop>(values);
  Scope* turn = &new_scope(scope);
  bool complete = false;  // whether a turn ran to its end
  for (std::size_t i = 0; i < values.size(); ++i) {
    runtime_.step();
    if (turn->is_kept()) turn = &new_scope(scope);
    turn->clear();
    static_cast<Loop*>(loop.object)->go_to(i);
    turn->set(runtime_, "loop", loop);
    assign(statement.target, values[i], *turn);
    const Flow flow = run(statement.body, *turn);
    if (flow == Flow::Break) break;
    complete = complete || flow == Flow::Next;
  }
  // As in Jinja, {% else %} runs if `break` or `continue` ended every turn.
  return complete ? Flow::Next : run(statement.else_body, new_scope(scope));
}

void Interpreter::run_call(const CallStatement& statement, Scope& scope) {
  const Value caller = runtime_.object<Macro>(*this, statement.caller, scope);
  print(to_text(runtime_, call(*statement.call, scope, &caller)));
}

void Interpreter::assign(const Target& target, const Value& value, Scope& scope) {
  if (!target.parts.empty()) {
    const Values values = elements(runtime_, value);
    if (values.size() != target.parts.size()) {
      throw Failure("expected {} values to assign, found {}", target.parts.size(), values.size());
    }
    for (std::size_t i = 0; i < values.size(); ++i) assign(target.parts[i], values[i], scope);
  } else if (runtime_.look_at(target.name.size()); target.attribute.empty()) {
    scope.set(runtime_, target.name, value);
  } else {
    const Value* found = scope.find(target.name);
    auto* space = found != nullptr && found->is(Value::Kind::Object)
                      ? dynamic_cast<Namespace*>(found->object)
                      : nullptr;
    if (space == nullptr) {
      throw Failure("expected '{}' to be a namespace, found {}", printable(target.name, 40),
                    found == nullptr ? "nothing" : kind_name(*found));
    }
    space->set(runtime_, target.attribute, value);
  }
}

Value Interpreter::call_macro(const MacroBody& macro, Scope& outer, const Arguments& arguments) {
  const Runtime::Level level(runtime_);
  Scope& scope = new_scope(outer);
  auto named = arguments.by_name;
  const Values& by_place = arguments.by_place;
  if (macro.takes_caller || macro.name == "caller") {
    if (const auto caller = take(named, "caller")) scope.set(runtime_, "caller", *caller);
  }
  for (std::size_t i = 0; i < macro.parameters.size(); ++i) {
    const Parameter& parameter = macro.parameters[i];
    // take() moves the arguments after the one that it removes.
    runtime_.look_at(parameter.name.size() + named.size() * sizeof(named[0]));
    const auto by_name = take(named, parameter.name);
    if (i < by_place.size()) {
      if (by_name) throw Failure("{}: argument '{}' is given twice", macro.name, parameter.name);
      scope.set(runtime_, parameter.name, by_place[i]);
    } else if (by_name) {
      scope.set(runtime_, parameter.name, *by_name);
    } else if (parameter.default_value) {
      scope.set(runtime_, parameter.name, evaluate(*parameter.default_value, scope));
    } else {
      scope.set(runtime_, parameter.name, runtime_.undefined("argument '" + parameter.name + "'"));
    }
  }
  if (macro.takes_more) {
    const auto more = std::min(by_place.size(), macro.parameters.size());
    scope.set(runtime_, "varargs",
              runtime_.tuple(
                  Values(by_place.begin() + static_cast<std::ptrdiff_t>(more), by_place.end())));
  } else if (by_place.size() > macro.parameters.size()) {
    throw Failure("{}: expected at most {} arguments, found {}", macro.name,
                  macro.parameters.size(), by_place.size());
  }
  if (macro.takes_more_named) {
    Dict dict;
    for (const auto& [name, value] : named) {
      dict.items.emplace_back(runtime_.text(MarkedText(name)), value);
    }
    scope.set(runtime_, "kwargs", runtime_.dict(std::move(dict)));
  } else if (!named.empty()) {
    throw Failure("{}: has no argument '{}'", macro.name, printable(named.front().first, 40));
  }
  return captured(macro.body, scope);
}

}  // namespace stagecraft::jinja
