// value is defined, value is string, value is in [1, 2] ...

#include "base/error.h"
#include "text/jinja/builtins.h"
#include "text/jinja/characters.h"
#include "text/jinja/look_up.h"
#include "text/jinja/methods.h"
#include "text/jinja/operations.h"
#include "text/jinja/printing.h"

namespace stagecraft::jinja {
namespace {

using Kind = Value::Kind;

template <Kind... kinds>
bool is_kind(Runtime&, const Value& value, const Arguments& arguments) {
  arguments.take("a type test (string, mapping, ...)", {});
  return ((value.kind == kinds) || ...);
}

bool is_defined(Runtime&, const Value& value, const Arguments& arguments) {
  arguments.take("defined", {});
  return !value.is(Kind::Undefined);
}

template <bool wanted>
bool is_exactly(Runtime&, const Value& value, const Arguments& arguments) {
  arguments.take("true or false", {});
  return value.is(Kind::Bool) && value.boolean == wanted;
}

bool is_iterable(Runtime&, const Value& value, const Arguments& arguments) {
  arguments.take("iterable", {});
  return value.is_sequence() || value.is(Kind::Dict) || value.is(Kind::String) ||
         value.is(Kind::Undefined);
}

bool is_callable(Runtime&, const Value& value, const Arguments& arguments) {
  arguments.take("callable", {});
  // What is not defined counts as callable in Python, too; a call of it is an error.
  return value.is(Kind::Undefined) || (value.is(Kind::Object) && value.object->is_callable());
}

// The remainder of a division by 2, or by a given number.
Value rest(Runtime& runtime, const Value& value, const Value& by) {
  if (!value.is_numeric()) throw Failure("expected a number, found {}", kind_name(value));
  return binary(runtime, "%", value, by);
}
bool is_even(Runtime& runtime, const Value& value, const Arguments& arguments) {
  arguments.take("even", {});
  return rest(runtime, value, Value::of_integer(2)).real() == 0.0;
}
bool is_odd(Runtime& runtime, const Value& value, const Arguments& arguments) {
  arguments.take("odd", {});
  return rest(runtime, value, Value::of_integer(2)).real() == 1.0;
}

bool is_in(Runtime& runtime, const Value& value, const Arguments& arguments) {
  return contains(runtime, *arguments.take("in", {"seq"}, 1)[0], value);
}

template <bool upper_wanted>
bool is_case(Runtime& runtime, const Value& value, const Arguments& arguments) {
  arguments.take("upper or lower", {});
  const Value text = runtime.text(to_text(runtime, value));
  const Arguments none;  // GCC 14 does not compile a temporary here
  return find_string_method(upper_wanted ? "isupper" : "islower")(runtime, text, none).boolean;
}

enum class Order { Equal, Unequal, Less, LessOrEqual, Greater, GreaterOrEqual };
template <Order order>
bool compares(Runtime& runtime, const Value& value, const Arguments& arguments) {
  constexpr std::string_view kOperators[] = {"==", "!=", "<", "<=", ">", ">="};
  const Value other = *arguments.take("a comparison", {"other"}, 1)[0];
  return compare(runtime, kOperators[static_cast<std::size_t>(order)], value, other);
}

}  // namespace

TestFunction find_test(std::string_view name) {
  static constexpr Named<TestFunction> kTests[] = {
      {"defined", is_defined},
      {"undefined", is_kind<Kind::Undefined>},
      {"none", is_kind<Kind::None>},
      {"boolean", is_kind<Kind::Bool>},
      {"true", is_exactly<true>},
      {"false", is_exactly<false>},
      {"integer", is_kind<Kind::Integer>},
      {"float", is_kind<Kind::Float>},
      {"number", is_kind<Kind::Integer, Kind::Float, Kind::Bool>},
      {"string", is_kind<Kind::String>},
      {"mapping", is_kind<Kind::Dict>},
      {"sequence", is_kind<Kind::String, Kind::List, Kind::Tuple, Kind::Dict, Kind::Undefined>},
      {"iterable", is_iterable},
      {"callable", is_callable},
      {"even", is_even},
      {"odd", is_odd},
      {"in", is_in},
      {"upper", is_case<true>},
      {"lower", is_case<false>},
      {"eq", compares<Order::Equal>},
      {"equalto", compares<Order::Equal>},
      {"==", compares<Order::Equal>},
      {"ne", compares<Order::Unequal>},
      {"!=", compares<Order::Unequal>},
      {"lt", compares<Order::Less>},
      {"lessthan", compares<Order::Less>},
      {"<", compares<Order::Less>},
      {"le", compares<Order::LessOrEqual>},
      {"<=", compares<Order::LessOrEqual>},
      {"gt", compares<Order::Greater>},
      {"greaterthan", compares<Order::Greater>},
      {">", compares<Order::Greater>},
      {"ge", compares<Order::GreaterOrEqual>},
      {">=", compares<Order::GreaterOrEqual>},
  };
  return look_up(kTests, name);
}

bool apply_test(Runtime& runtime, std::string_view name, const Value& value,
                const Arguments& arguments) {
  runtime.step();
  const TestFunction test = find_test(name);
  if (test == nullptr) throw Failure("the test '{}' is not supported", printable(name, 40));
  return test(runtime, value, arguments);
}

}  // namespace stagecraft::jinja
