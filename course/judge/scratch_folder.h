#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>

#include "base/error.h"

namespace stagecraft::stages {

// A new temporary folder, which is deleted at the end of its life. Throws Error if it cannot be
// made: the student is not to blame for it.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "stagecraft-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw Error("{}: cannot be made", name);
    path_ = name;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const char* name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace stagecraft::stages
