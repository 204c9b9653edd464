// Evaluates expressions for the interpreter.

#include "base/error.h"
#include "text/jinja/builtins.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/operations.h"
#include "text/jinja/printing.h"

namespace stagecraft::jinja {

using NodeKind = Expression::Kind;

Value Interpreter::evaluate(const Expression& expression, const Scope& scope) {
  const Runtime::Level level(runtime_);
  runtime_.step();
  line_ = expression.line;
  return evaluate_parts(expression, scope);
}

Value Interpreter::evaluate_parts(const Expression& expression, const Scope& scope) {
  const auto part = [&](std::size_t i) {
    const Value value = evaluate(*expression.parts[i], scope);
    line_ = expression.line;  // errors from its use belong to this line
    return value;
  };
  const auto part_or_none = [&](std::size_t i) {
    return expression.parts[i] ? part(i) : Value::none();
  };
  switch (expression.kind) {
    case NodeKind::Constant:
      return constant(expression);
    case NodeKind::Name:
      return name(expression, scope);
    case NodeKind::List:
      return runtime_.list(values_of(expression.parts, scope));
    case NodeKind::Tuple:
      return runtime_.tuple(values_of(expression.parts, scope));
    case NodeKind::Dict:
      return dict(expression, scope);
    case NodeKind::Attribute:
      return attribute(runtime_, part(0), expression.text);
    case NodeKind::Item: {
      const Value value = part(0);
      return item(runtime_, value, part(1));
    }
    case NodeKind::Slice: {
      const Value value = part(0), first = part_or_none(1), last = part_or_none(2);
      return slice(runtime_, value, first, last, part_or_none(3));
    }
    case NodeKind::Call:
      return call(expression, scope, nullptr);
    case NodeKind::Filter:
      return filter(expression, scope, nullptr);
    case NodeKind::Test: {
      const Value value = part(0);
      return Value::of_bool(
          apply_test(runtime_, expression.text, value, arguments_of(expression, scope)));
    }
    case NodeKind::Unary:
      return unary(expression, scope);
    case NodeKind::Binary: {
      const Value left = part(0), right = part(1);
      return binary(runtime_, expression.text, left, right);
    }
    case NodeKind::And: {
      const Value left = part(0);
      return is_true(left) ? part(1) : left;
    }
    case NodeKind::Or: {
      const Value left = part(0);
      return is_true(left) ? left : part(1);
    }
    case NodeKind::Concat: {  // unlike +, ~ does not escape, not even next to markup
      MarkedText text;
      for (const Value& value : values_of(expression.parts, scope)) {
        text.append(to_text(runtime_, value));
      }
      return runtime_.text(std::move(text));
    }
    case NodeKind::Compare:
      return comparison(expression, scope);
    case NodeKind::Conditional:
      if (is_true(part(1))) return part(0);
      return expression.parts[2] ? part(2)
                                 : runtime_.undefined("the value of an 'if' without 'else'");
  }
  return {};
}

Value Interpreter::constant(const Expression& expression) {
  if (const auto* text = std::get_if<MarkedText>(&expression.literal)) {
    return Value::of_text(*text);
  }
  if (const auto* whole = std::get_if<std::int64_t>(&expression.literal)) {
    return Value::of_integer(*whole);
  }
  if (const auto* number = std::get_if<double>(&expression.literal)) {
    return Value::of_number(*number);
  }
  if (const auto* boolean = std::get_if<bool>(&expression.literal)) return Value::of_bool(*boolean);
  return Value::none();
}

Value Interpreter::name(const Expression& expression, const Scope& scope) {
  runtime_.look_at(expression.text.size());
  if (const Value* value = scope.find(expression.text)) return *value;
  if (auto function = find_function(runtime_, expression.text)) return *function;
  return runtime_.undefined("'" + printable(expression.text, 40) + "'");
}

Value Interpreter::unary(const Expression& expression, const Scope& scope) {
  const Value value = evaluate(*expression.parts[0], scope);
  if (expression.text == "not") return Value::of_bool(!is_true(value));
  if (expression.text == "-") return negative(value);
  if (!value.is_numeric()) throw Failure("'+': expected a number, found {}", kind_name(value));
  return value.is(Value::Kind::Bool) ? Value::of_integer(value.whole()) : value;
}

// a < b < c is a < b and b < c.
Value Interpreter::comparison(const Expression& expression, const Scope& scope) {
  Value left = evaluate(*expression.parts[0], scope);
  for (std::size_t i = 0; i < expression.operators.size(); ++i) {
    const Value right = evaluate(*expression.parts[i + 1], scope);
    if (!compare(runtime_, expression.operators[i], left, right)) return Value::of_bool(false);
    left = right;
  }
  return Value::of_bool(true);
}

Value Interpreter::dict(const Expression& expression, const Scope& scope) {
  Dict result;
  for (std::size_t i = 0; i < expression.parts.size(); i += 2) {
    const Value key = evaluate(*expression.parts[i], scope);
    put(runtime_, result, key, evaluate(*expression.parts[i + 1], scope));
  }
  return runtime_.dict(std::move(result));
}

Value Interpreter::call(const Expression& expression, const Scope& scope, const Value* caller) {
  const Value function = evaluate(*expression.parts[0], scope);
  Arguments arguments = arguments_of(expression, scope);
  if (caller != nullptr) arguments.by_name.emplace_back("caller", *caller);
  line_ = expression.line;
  if (function.is(Value::Kind::Undefined) && function.missing != nullptr) {
    throw Failure("{} is not defined, so it cannot be called", *function.missing);
  }
  if (!function.is(Value::Kind::Object)) throw Failure("{} cannot be called", kind_name(function));
  return function.object->call(runtime_, arguments);
}

Value Interpreter::filter(const Expression& expression, const Scope& scope, const Value* input) {
  // The first of the filters of a block ({% filter upper %}) has no operand: it gets `input`.
  Value value;
  if (const auto& operand = expression.parts[0]; !operand) {
    value = *input;
  } else if (operand->kind == NodeKind::Filter && input) {
    value = filter(*operand, scope, input);
  } else {
    value = evaluate(*operand, scope);
  }
  const Arguments arguments = arguments_of(expression, scope);
  line_ = expression.line;
  return apply_filter(runtime_, expression.text, value, arguments);
}

Values Interpreter::values_of(const std::vector<ExpressionPtr>& expressions, const Scope& scope) {
  Values values;
  values.reserve(expressions.size());
  for (const auto& expression : expressions) values.push_back(evaluate(*expression, scope));
  return values;
}

Arguments Interpreter::arguments_of(const Expression& expression, const Scope& scope) {
  Arguments result;
  for (const Argument& argument : expression.arguments) {
    const Value value = evaluate(*argument.value, scope);
    if (argument.stars == 0 && argument.name.empty()) {
      result.by_place.push_back(value);
    } else if (argument.stars == 0) {
      runtime_.look_at(argument.name.size());
      result.by_name.emplace_back(argument.name, value);
    } else if (argument.stars == 1) {
      for (const Value& one : elements(runtime_, value)) result.by_place.push_back(one);
    } else if (value.is(Value::Kind::Dict)) {
      for (const auto& [key, one] : value.dict->items) {
        if (!key.is(Value::Kind::String))
          throw Failure("**: expected keys that are strings, found {}", kind_name(key));
        runtime_.look_at(key.bytes().size());
        result.by_name.emplace_back(key.bytes(), one);
      }
    } else {
      throw Failure("**: expected a dict, found {}", kind_name(value));
    }
  }
  return result;
}

}  // namespace stagecraft::jinja
