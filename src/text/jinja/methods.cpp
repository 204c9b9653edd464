#include "text/jinja/methods.h"

#include <array>

#include "text/jinja/operations.h"
#include "text/jinja/printing.h"

namespace stagecraft::jinja {
namespace {

using Kind = Value::Kind;

class BoundMethod : public Object {
 public:
  BoundMethod(const Value& self, std::string_view name, Method method)
      : self_(self), name_(name), method_(method) {}

  std::string name() const override { return "method " + name_; }
  bool is_callable() const override { return true; }
  Value call(Runtime& runtime, const Arguments& arguments) override {
    return method_(runtime, self_, arguments);
  }

 private:
  Value self_;
  std::string name_;
  Method method_;
};

// ---- dicts --------------------------------------------------------------------------------------

Value dict_get(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const auto given = arguments.take("get", {"key", "default"}, 1);
  for (const auto& [key, value] : self.dict->items) {
    if (equal(runtime, key, *given[0])) return value;
  }
  return given[1].value_or(Value::none());
}

Value dict_keys(Runtime& runtime, const Value& self, const Arguments& arguments) {
  arguments.take("keys", {});
  return runtime.list(elements(runtime, self));
}

Value dict_values(Runtime& runtime, const Value& self, const Arguments& arguments) {
  arguments.take("values", {});
  Values values;
  for (const auto& [key, value] : self.dict->items) values.push_back(value);
  runtime.step(values.size());
  return runtime.list(std::move(values));
}

Value dict_items(Runtime& runtime, const Value& self, const Arguments& arguments) {
  arguments.take("items", {});
  Values pairs;
  for (const auto& [key, value] : self.dict->items) pairs.push_back(runtime.tuple({key, value}));
  runtime.step(pairs.size());
  return runtime.list(std::move(pairs));
}

Value copy(Runtime&, const Value& self, const Arguments& arguments) {
  arguments.take("copy", {});
  return self;  // nothing can change the original
}

// ---- lists --------------------------------------------------------------------------------------

Value list_index(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const auto given = arguments.take("index", {"value"}, 1);
  for (std::size_t i = 0; i < self.list->size(); ++i) {
    if (equal(runtime, (*self.list)[i], *given[0])) {
      return Value::of_integer(static_cast<std::int64_t>(i));
    }
  }
  throw Failure("index: {} is not in the list", describe(*given[0]));
}

Value list_count(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const auto given = arguments.take("count", {"value"}, 1);
  std::int64_t count = 0;
  for (const Value& value : *self.list) count += equal(runtime, value, *given[0]);
  return Value::of_integer(count);
}

Method find_method(const Value& value, std::string_view name) {
  if (value.is(Kind::String)) return find_string_method(name);
  if (value.is(Kind::Dict)) {
    if (name == "get") return dict_get;
    if (name == "keys") return dict_keys;
    if (name == "values") return dict_values;
    if (name == "items") return dict_items;
    if (name == "copy") return copy;
  }
  if (value.is_sequence()) {
    if (name == "index") return list_index;
    if (name == "count") return list_count;
    if (name == "copy" && value.is(Kind::List)) return copy;
  }
  return nullptr;
}

// Rejects Python methods that change a value: other variables may refer to it.
void refuse_changes(const Value& value, std::string_view name) {
  constexpr std::array<std::string_view, 8> kOfLists = {"append", "clear",  "extend",  "insert",
                                                        "pop",    "remove", "reverse", "sort"};
  constexpr std::array<std::string_view, 5> kOfDicts = {"clear", "pop", "popitem", "setdefault",
                                                        "update"};
  const auto refuse = [&](const auto& names) {
    for (const std::string_view refused : names) {
      if (name != refused) continue;
      throw Failure("{}: a template may not change {}", name, kind_name(value));
    }
  };
  if (value.is(Kind::List)) refuse(kOfLists);
  if (value.is(Kind::Dict) && value.dict->find(name) == nullptr) refuse(kOfDicts);
}

}  // namespace

std::optional<Value> method(Runtime& runtime, const Value& value, std::string_view name) {
  if (const Method found = find_method(value, name)) {
    return runtime.object<BoundMethod>(value, name, found);
  }
  refuse_changes(value, name);
  return std::nullopt;
}

const MarkedText& text_of(const Value& value, std::string_view what) {
  if (!value.is(Kind::String))
    throw Failure("{}: expected a string, found {}", what, kind_name(value));
  return *value.text;
}

std::int64_t whole_of(const Value& value, std::string_view what) {
  if (!value.is_whole()) {
    throw Failure("{}: expected a whole number, found {}", what, describe(value));
  }
  return value.whole();
}

}  // namespace stagecraft::jinja
