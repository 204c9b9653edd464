#pragma once

#include <ctime>
#include <functional>
#include <string>
#include <string_view>

#include "text/jinja/runtime.h"
#include "text/jinja/tree.h"
#include "text/marked_text.h"

namespace stagecraft::jinja {

// A template in the language of Jinja 2.1 and later (jinja.palletsprojects.com), as transformers
// renders chat templates: trim_blocks, lstrip_blocks, break and continue, {% generation %},
// raise_exception, strftime_now, and nothing that reaches beyond the template itself.
//
//   source -> lexer -> tokens -> parser -> tree -> interpreter(variables) -> text
//
// Where a template is one that Jinja refuses, or uses what is not supported here (include, extends,
// block, recursive loops, a few filters), an Error says so with the line. Nothing is guessed.
class Template {
 public:
  static constexpr std::size_t kMaxBytes = 1 << 20;

  // `name` is said in errors: "chat_template.jinja: line 3: expected ...".
  Template(std::string_view source, std::string name);

  // Puts the variables into a Runtime: {name, value} pairs.
  using Variables = std::function<std::vector<std::pair<std::string, Value>>(Runtime&)>;
  // What it prints. Values made from text that people typed carry their marks into it. `now` is
  // what strftime_now tells. Throws Error with the line: what the template does wrong, what it
  // refuses by raise_exception, or that it was stopped.
  MarkedText render(const Variables& variables, const std::tm& now,
                    const Limits& limits = {}) const;

  const std::string& name() const { return name_; }

 private:
  std::string name_;
  Block block_;
};

}  // namespace stagecraft::jinja
