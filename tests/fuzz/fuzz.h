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

// What a target needs beside the parser that it feeds. Two programs are made of a target NAME.cpp,
// which is nothing but LLVMFuzzerTestOneInput: with libFuzzer (preset `fuzz`) the one that looks
// for new inputs, and in every build, with replay.cpp, the one that tries those that are known.
namespace stagecraft {

inline std::string_view as_text(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// An input in two parts: what stands before the first `separator`, and what stands behind it.
inline std::pair<std::string, std::string> two_texts(std::string_view input, char separator) {
  const std::size_t at = input.find(separator);
  if (at == std::string_view::npos) return {std::string(input), std::string()};
  return {std::string(input.substr(0, at)), std::string(input.substr(at + 1))};
}

// A promise that a parser keeps for any input. Not assert(): it holds in every build.
inline void require(bool holds, const char* promise) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", promise);
  std::abort();
}

// A folder for parsers that open files. One for the whole run: an input overwrites the one before.
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
