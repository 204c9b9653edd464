#pragma once

#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <span>
#include <string_view>

namespace stagecraft {

// A file that appears complete or not at all: written under a temporary name in the same folder and
// renamed by commit(). Without commit(), the destructor deletes it: nothing is left behind unless a
// signal ends the program.
class AtomicFile {
 public:
  // A symbolic link to a regular file is followed: the file it points to is replaced, the link
  // stays. Throws Error if `path` exists and `replace` is false (commit() does so, too), if it is
  // anything but a regular file (a device, a FIFO, a folder), or if it cannot be written.
  AtomicFile(std::filesystem::path path, bool replace);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  // These throw Error with the system's reason, such as a full disk.
  void write(std::string_view bytes);
  void write(std::span<const std::byte> bytes);
  void commit();

  std::size_t size() const { return size_; }  // bytes written so far

 private:
  [[noreturn]] void refuse() const;

  std::filesystem::path path_;
  bool replace_;
  std::filesystem::path unfinished_;
  std::FILE* file_ = nullptr;
  std::size_t size_ = 0;
};

// Throws Error "PATH: already exists (--force replaces it)" if anything with this name exists.
void refuse_existing(const std::filesystem::path& path);

// Throws Error "PATH: expected a regular file, found a device" if `path` exists and is of another
// kind than `expected` (regular or directory). Symbolic links are followed; a link that points to
// nothing is refused.
void refuse_other_kinds(const std::filesystem::path& path, std::filesystem::file_type expected);

}  // namespace stagecraft
