#pragma once

#include <ctime>
#include <functional>
#include <string>
#include <string_view>

#include "text/jinja/parser.h"
#include "text/jinja/runtime.h"
#include "text/marked_text.h"

namespace stagecraft::jinja {

// A template in the language of Jinja 2.1 and later (jinja.palletsprojects.com), as transformers
// renders chat templates: with trim_blocks, lstrip_blocks, break and continue, {% generation %},
// raise_exception and strftime_now. It cannot access anything outside.
//
//   source -> lexer -> tokens -> parser -> tree -> interpreter(variables) -> text
//
// If Jinja would reject a template, or if it uses an unsupported feature (include, extends, block,
// recursive loops, a few filters), an Error with the line says so. Nothing is guessed.
class Template {
 public:
  static constexpr std::size_t kMaxBytes = 1 << 20;

  // `name` is used in errors: "chat_template.jinja: line 3: expected ...".
  Template(std::string_view source, std::string name);

  // Creates the variables in a Runtime: {name, value} pairs.
  using Variables = std::function<std::vector<std::pair<std::string, Value>>(Runtime&)>;
  // Returns the output. Values made from typed text keep their marks. `now` is the time for
  // strftime_now. Throws Error with the line for an error in the template, for raise_exception, or
  // if a limit stopped the template.
  MarkedText render(const Variables& variables, const std::tm& now,
                    const Limits& limits = {}) const;

  const std::string& name() const { return name_; }
  // Whether an expression of the template reads a variable of this name.
  bool reads(std::string_view variable) const { return parsed_.names.contains(variable); }

 private:
  std::string name_;
  Parsed parsed_;
};

}  // namespace stagecraft::jinja
