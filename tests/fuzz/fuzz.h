#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>

// Helpers for fuzz targets. A target NAME.cpp defines only LLVMFuzzerTestOneInput. In the preset
// `fuzz`, it is linked with libFuzzer into a program that searches for new inputs. In every other
// build, replay.cpp includes all targets and makes a program that runs the known inputs.
namespace stagecraft {

inline std::string_view as_text(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Splits an input at the first `separator`. Without one, the second text is empty.
inline std::pair<std::string, std::string> two_texts(std::string_view input, char separator) {
  const std::size_t at = input.find(separator);
  if (at == std::string_view::npos) return {std::string(input), std::string()};
  return {std::string(input.substr(0, at)), std::string(input.substr(at + 1))};
}

// Aborts unless a promise that a parser must keep for any input holds. Unlike assert(), it works in
// every build.
inline void require(bool holds, const char* promise) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", promise);
  std::abort();
}

// A temporary folder for parsers that open files. There is one for the whole run: each input
// overwrites the one before.
class InputFolder {
 public:
  InputFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "stagecraft-fuzz.XXXXXX").string();
    require(::mkdtemp(name.data()) != nullptr, "there is a folder for temporary files");
    path_ = name;
  }
  ~InputFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  InputFolder(const InputFolder&) = delete;
  InputFolder& operator=(const InputFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path write(const char* name, std::string_view bytes) const {
    std::ofstream(path_ / name, std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace stagecraft

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
