#include "text/jinja/runtime.h"

#include <algorithm>

#include "base/error.h"

namespace stagecraft::jinja {

Value Object::call(Runtime&, const Arguments&) { throw Failure("{} cannot be called", name()); }

std::optional<Value> Object::attribute(Runtime&, std::string_view) { return std::nullopt; }

std::vector<std::optional<Value>> Arguments::take(std::string_view function,
                                                  std::initializer_list<std::string_view> names,
                                                  std::size_t required) const {
  if (by_place.size() > names.size()) {
    throw Failure("{}: expected at most {} arguments, found {}", function, names.size(),
                  by_place.size());
  }
  std::vector<std::optional<Value>> result(by_place.begin(), by_place.end());
  result.resize(names.size());
  for (const auto& [name, value] : by_name) {
    const auto place = std::find(names.begin(), names.end(), name);
    if (place == names.end()) {
      throw Failure("{}: has no argument '{}'", function, printable(name, 40));
    }
    auto& slot = result[static_cast<std::size_t>(place - names.begin())];
    if (slot) throw Failure("{}: argument '{}' is given twice", function, name);
    slot = value;
  }
  for (std::size_t i = 0; i < required; ++i) {
    if (!result[i]) {
      throw Failure("{}: argument '{}' is missing", function, *(names.begin() + i));
    }
  }
  return result;
}

Value Runtime::text(MarkedText text) {
  use_bytes(sizeof(MarkedText) + text.size() + text.typed_spans().size() * sizeof(TextSpan));
  texts_.push_back(std::move(text));
  return Value::of_text(texts_.back());
}

Value Runtime::sequence(Value::Kind kind, Values values) {
  use_bytes(sizeof(Values) + values.size() * sizeof(Value));
  lists_.push_back(std::move(values));
  Value result;
  result.kind = kind;
  result.list = &lists_.back();
  return result;
}

Value Runtime::dict(Dict dict) {
  use_bytes(sizeof(Dict) + dict.items.size() * 2 * sizeof(Value));
  dicts_.push_back(std::move(dict));
  Value result;
  result.kind = Value::Kind::Dict;
  result.dict = &dicts_.back();
  return result;
}

Value Runtime::undefined(std::string what) {
  use_bytes(sizeof(std::string) + what.size());
  missing_.push_back(std::move(what));
  Value result;
  result.missing = &missing_.back();
  return result;
}

void Runtime::step(std::size_t count) {
  steps_ += count;
  if (steps_ > limits_.steps) {
    throw Failure("stopped: the template takes more than {} steps", limits_.steps);
  }
}

void Runtime::use_bytes(std::size_t count) {
  bytes_ += count;
  if (bytes_ > limits_.bytes) {
    throw Failure("stopped: the template needs more than {} MiB of memory", limits_.bytes >> 20);
  }
}

void Runtime::too_deep() {
  --depth_;
  throw Failure("stopped: more than {} nested calls and expressions", limits_.depth);
}

}  // namespace stagecraft::jinja
