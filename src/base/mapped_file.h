#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

namespace stagecraft {

// A whole file, mapped read-only: pages come from the disk when they are first touched, and are
// shared by every process that maps the same file. Move-only; views into `bytes()` must not outlive
// it. Throws Error naming the path if it cannot be opened or is no regular file.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

// The whole of a small text file (config.json, tokenizer.json). Throws Error naming the path if it
// cannot be read or has more than `max_bytes`.
std::string read_text_file(const std::filesystem::path& path, std::size_t max_bytes);

}  // namespace stagecraft
