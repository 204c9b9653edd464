#pragma once

#include <optional>
#include <vector>

#include "text/jinja/runtime.h"

namespace stagecraft::jinja {

// value.name for a method of Python's strings, lists or dicts that changes nothing: a function,
// bound to the value. nullopt if there is none of this name.
std::optional<Value> method(Runtime& runtime, const Value& value, std::string_view name);

using Method = Value (*)(Runtime& runtime, const Value& self, const Arguments& arguments);
Method find_string_method(std::string_view name);  // nullptr if there is none

// Used by filters, too.
struct Line {
  std::size_t begin, end, next;  // of its text in bytes, and of the next line
};
std::vector<Line> lines_of(std::string_view text);  // as str.splitlines divides it
Value stripped(Runtime& runtime, const Value& text, const std::optional<Value>& characters,
               bool left, bool right);
Value replaced(Runtime& runtime, const MarkedText& text, const MarkedText& from,
               const MarkedText& to, std::int64_t at_most);
enum class Case { Upper, Lower, Title, Capitalized };
Value in_case(Runtime& runtime, const MarkedText& text, Case which);
Value joined(Runtime& runtime, const Values& values, const MarkedText& separator);

// Checks that an argument is a string or a whole number. `what` names it in the Failure.
const MarkedText& text_of(const Value& value, std::string_view what);
std::int64_t whole_of(const Value& value, std::string_view what);

}  // namespace stagecraft::jinja
