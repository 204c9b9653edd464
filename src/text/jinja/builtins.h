#pragma once

#include "text/jinja/runtime.h"

namespace stagecraft::jinja {

// value | name(arguments). nullptr if there is no filter of this name.
using FilterFunction = Value (*)(Runtime& runtime, const Value& value, const Arguments& arguments);
FilterFunction find_filter(std::string_view name);
FilterFunction find_text_filter(std::string_view name);  // only those that make texts or numbers
FilterFunction find_sequence_filter(std::string_view name);  // only those that work on lists
Value apply_filter(Runtime& runtime, std::string_view name, const Value& value,
                   const Arguments& arguments);

// value is name(arguments).
using TestFunction = bool (*)(Runtime& runtime, const Value& value, const Arguments& arguments);
TestFunction find_test(std::string_view name);
bool apply_test(Runtime& runtime, std::string_view name, const Value& value,
                const Arguments& arguments);

// The functions that every template can call: range, namespace, raise_exception, strftime_now.
// nullopt if there is none of this name.
std::optional<Value> find_function(Runtime& runtime, std::string_view name);

// A namespace, the only object that a template can change: {% set ns.name = value %}.
class Namespace : public Object {
 public:
  std::string name() const override { return "Namespace"; }
  std::optional<Value> attribute(Runtime& runtime, std::string_view name) override;
  void set(Runtime& runtime, std::string_view name, const Value& value);

 private:
  std::vector<std::pair<std::string, Value>> values_;
};

}  // namespace stagecraft::jinja
