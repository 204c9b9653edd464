#include "course/judge/paths.h"

#include <nlohmann/json.hpp>

#include "base/mapped_file.h"

namespace stagecraft::stages {

const std::filesystem::path& repository() {
  static const std::filesystem::path path = REPOSITORY;
  return path;
}

std::filesystem::path yardsticks() {
#ifdef YARDSTICKS
  return YARDSTICKS;
#else
  return {};
#endif
}

std::filesystem::path test_data() { return repository() / "tests" / "data"; }

nlohmann::json repository_json(const std::filesystem::path& name) {
  constexpr std::size_t kMaxBytes = 1u << 20;
  return nlohmann::json::parse(read_text_file((repository() / name).string(), kMaxBytes));
}

}  // namespace stagecraft::stages
