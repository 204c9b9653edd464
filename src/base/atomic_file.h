#pragma once

#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <span>
#include <string_view>

namespace stagecraft {

// A file that appears complete or not at all: written under a temporary name in the same folder and
// renamed by commit(). Without commit(), nothing is left behind.
class AtomicFile {
 public:
  // Throws Error if `path` is there already and is not to be replaced, or cannot be written.
  AtomicFile(std::filesystem::path path, bool replace);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  // Throw Error with the system's reason (a full disk).
  void write(std::string_view bytes);
  void write(std::span<const std::byte> bytes);
  void commit();

  std::size_t size() const { return size_; }  // bytes written so far

 private:
  [[noreturn]] void refuse() const;

  std::filesystem::path path_;
  std::filesystem::path unfinished_;
  std::FILE* file_ = nullptr;
  std::size_t size_ = 0;
};

// Throws Error "PATH: is there already (--force replaces it)" if there is anything of this name.
void refuse_existing(const std::filesystem::path& path);

}  // namespace stagecraft
