#pragma once

#include <string>

#include <fmt/args.h>
#include <fmt/format.h>

namespace stagecraft::stages {

// "en" or "zh", as STAGECRAFT_LANG, else LC_ALL, else LANG say.
const std::string& language();

// The text of stages/messages.json under `key` in the reader's language (STAGECRAFT_LANG, else
// LANG: zh..., everything else is English).
const std::string& message_template(const std::string& key);

template <class... Args>
std::string say(const std::string& key, const Args&... args) {
  return fmt::format(fmt::runtime(message_template(key)), args...);
}

// A text as one would write it in C++: "a\nb".
std::string quoted(const std::string& text);

}  // namespace stagecraft::stages
