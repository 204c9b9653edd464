#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>

namespace stagecraft::jinja {

// An error in a template or during rendering. Template adds the file and the line and throws it as
// an Error.
class Failure : public std::runtime_error {
 public:
  template <class... Args>
  explicit Failure(fmt::format_string<Args...> format, Args&&... args)
      : std::runtime_error(fmt::format(format, std::forward<Args>(args)...)) {}
};

// The same during parsing, with the line.
class SyntaxFailure : public Failure {
 public:
  SyntaxFailure(int at_line, const std::string& message) : Failure("{}", message), line(at_line) {}
  int line;
};

}  // namespace stagecraft::jinja
