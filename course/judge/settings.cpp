#include "course/judge/settings.h"

#include <cstdlib>

#include "base/error.h"
#include "base/number.h"

namespace stagecraft::stages {

std::string setting(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::optional<std::uint64_t> number_setting(const char* name) {
  const std::string text = setting(name);
  if (text.empty()) return std::nullopt;
  const std::optional<std::uint64_t> number = integer_of<std::uint64_t>(text);
  if (!number) throw Error("{}: expected a whole number, found '{}'", name, text);
  return number;
}

std::filesystem::path worker() {
  const std::string path = setting("STAGE_WORKER");
  if (path.empty()) throw Error("STAGE_WORKER: expected the path of a worker");
  return path;
}

}  // namespace stagecraft::stages
