// replay NAME FILE...: runs a fuzz target once with each known input: its seeds, and inputs that
// were found earlier.
#include <iterator>
#include <map>
#include <vector>

#include "tests/fuzz/fuzz.h"

// CMake writes both lists: the targets, each under a name of its own, and these names.
#include "target_functions.inc"

int main(int argc, char** argv) {
  const std::map<std::string_view, int (*)(const std::uint8_t*, std::size_t)> targets = {
#include "target_names.inc"
  };
  const auto target = targets.find(argc > 1 ? argv[1] : "");
  stagecraft::require(target != targets.end(), "the first argument names a target");
  std::vector<std::filesystem::path> files;
  for (int i = 2; i < argc; ++i) {
    if (!std::filesystem::is_directory(argv[i])) {
      files.emplace_back(argv[i]);
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) files.push_back(entry);
  }
  stagecraft::require(!files.empty(), "a target has inputs");
  for (const std::filesystem::path& file : files) {
    std::ifstream in(file, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    stagecraft::require(in.good() || in.eof(), "an input can be read");
    std::printf("%s: %zu bytes\n", file.filename().c_str(), bytes.size());
    std::fflush(stdout);  // after a crash, the last name printed is the input that caused it
    target->second(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  }
}
