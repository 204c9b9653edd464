#include "course/judge/messages.h"

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "course/judge/paths.h"

namespace stagecraft::stages {
namespace {

std::string find_language() {
  for (const char* name : {"STAGECRAFT_LANG", "LC_ALL", "LANG"}) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') {
      return std::string(value).substr(0, 2) == "zh" ? "zh" : "en";
    }
  }
  return "en";
}

}  // namespace

const std::string& language() {
  static const std::string chosen = find_language();
  return chosen;
}

const std::string& message_template(const std::string& key) {
  static const nlohmann::json messages = repository_json("stages/messages.json");
  return messages.at(key).at(language()).get_ref<const std::string&>();
}

std::string quoted(const std::string& text) {
  std::string shown = "\"";
  for (std::size_t begin = 0;;) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    shown += printable(text.substr(begin, end - begin));
    if (end == text.size()) return shown + "\"";
    shown += "\\n";
    begin = end + 1;
  }
}

}  // namespace stagecraft::stages
