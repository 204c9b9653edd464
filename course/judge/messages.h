#pragma once

#include <string>

#include <fmt/args.h>
#include <fmt/format.h>

namespace stagecraft::stages {

// "en" or "zh": zh if the first of STAGECRAFT_LANG, LC_ALL and LANG that is set begins with "zh".
const std::string& language();

// The text of stages/messages.json under `key`, in language().
const std::string& message_template(const std::string& key);

template <class... Args>
std::string say(const std::string& key, const Args&... args) {
  return fmt::format(fmt::runtime(message_template(key)), args...);
}

// The text as a C++ string literal: "a\nb".
std::string quoted(const std::string& text);

}  // namespace stagecraft::stages
