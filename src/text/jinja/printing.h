#pragma once

#include "text/jinja/runtime.h"

namespace stagecraft::jinja {

// A value as Python's str() writes it, which is what {{ value }} prints. A string is unchanged, an
// undefined value gives nothing, elements of lists and dicts are written as by repr().
MarkedText to_text(Runtime& runtime, const Value& value);
// 1.0, 1e-05, inf: the fewest digits that read back as the same number.
std::string number_text(double number);

struct JsonStyle {
  bool ascii = false;  // é as \u00e9
  bool sort_keys = false;
  std::optional<std::string> line_indent;  // one member per line, indented by this
  std::string item_end = ", ";
  std::string key_end = ": ";
};
// Python's json.dumps. Throws Failure for values that JSON cannot express (undefined, functions).
MarkedText to_json(Runtime& runtime, const Value& value, const JsonStyle& style);

// "a string", "None", for errors.
std::string kind_name(const Value& value);
// The same with the value, in short form.
std::string describe(const Value& value);

}  // namespace stagecraft::jinja
