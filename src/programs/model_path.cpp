#include "programs/model_path.h"

#include <cstdlib>

#include "base/error.h"

#if defined(__APPLE__)
#include <mach-o/dyld.h>
#endif

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

fs::path program_path() {
#if defined(__APPLE__)
  char buffer[4096];
  std::uint32_t size = sizeof buffer;
  if (_NSGetExecutablePath(buffer, &size) == 0) return fs::path(buffer);
  return {};
#else
  std::error_code failed;
  return fs::read_symlink("/proc/self/exe", failed);
#endif
}

}  // namespace

fs::path find_model(const std::string& given, const std::string& default_name) {
  if (!given.empty()) return given;
  std::string looked_at;
  const auto try_folder = [&](const fs::path& folder) {
    looked_at += (looked_at.empty() ? "" : ", ") + folder.string();
    std::error_code ignored;
    return fs::is_directory(folder, ignored);
  };
  if (const char* home = std::getenv("STAGECRAFT_HOME")) {
    fs::path folder = fs::path(home) / "models" / default_name;
    if (try_folder(folder)) return folder;
  }
  fs::path installed =
      program_path().parent_path().parent_path() / "share/stagecraft/models" / default_name;
  if (try_folder(installed)) return installed;
  throw Error("no model given, and none found in {}: name one with --model", looked_at);
}

}  // namespace stagecraft
