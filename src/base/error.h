#pragma once

#include <fmt/core.h>

#include <stdexcept>
#include <string>
#include <string_view>

namespace stagecraft {

// The exception type of the project. Its message is one line for a person: the file, the field,
// tensor or option, what was expected, what was found. It may quote an untrusted file: control
// characters and broken UTF-8 are escaped. Programs print it and exit with code 1.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message);

  template <class... Args>
  explicit Error(fmt::format_string<Args...> format, Args&&... args)
      : Error(fmt::make_format_args(args...), format) {}

 private:
  // Not inline: hundreds of places throw, and each would contain a copy of this code.
  Error(fmt::format_args args, fmt::string_view format);
};

// Makes a name or text from an untrusted file fit for one line of a terminal: what a terminal
// would obey (utf8_controls_terminal) and broken UTF-8 are escaped, and the text is cut after about
// `max_bytes`.
std::string printable(std::string_view text, std::size_t max_bytes = 80);

}  // namespace stagecraft
