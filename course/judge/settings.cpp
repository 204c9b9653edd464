#include "course/judge/settings.h"

#include <cstdlib>

#include "base/error.h"

namespace stagecraft::stages {

std::string setting(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::filesystem::path worker() {
  const std::string path = setting("STAGE_WORKER");
  if (path.empty()) throw Error("STAGE_WORKER: expected the path of a worker");
  return path;
}

}  // namespace stagecraft::stages
