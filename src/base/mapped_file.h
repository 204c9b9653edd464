#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace stagecraft {

// A whole file, mapped read-only: pages come from the disk when they are first touched, and are
// shared by every process that maps the same file. Move-only; views into `bytes()` must not outlive
// it. Throws Error naming the path if it cannot be opened or is not a regular file.
//
// If another program truncates the file while it is mapped, the next access to a lost page ends
// this process with SIGBUS. So replace a model by renaming a new file over it (as write_safetensors
// does), never by writing into it.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }

  // Asks the system to begin reading these bytes of a mapped file from the disk, and does not wait.
  // For other memory nothing happens.
  static void fetch_soon(std::span<const std::byte> bytes);

  // Releases the memory of all pages touched so far, for a caller that has copied what it needs. A
  // page that is touched again is read from the disk, or from the system's cache.
  void release_pages() const;

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

// Whether a text may come from a pipe, as in `--grammar <(...)` of a shell. Then reading waits for
// the program that writes it. The files of a model must be regular files.
enum class Pipes { Refuse, Read };

// The whole of a small text file (config.json, tokenizer.json). Throws Error naming the path if it
// cannot be read or has more than `max_bytes`.
std::string read_text_file(const std::filesystem::path& path, std::size_t max_bytes,
                           Pipes pipes = Pipes::Refuse);

// Throws Error if the text is a Git LFS pointer: what `git clone` leaves in place of a large file
// if Git LFS is not installed. read_text_file calls it.
void refuse_lfs_pointer(std::string_view text, const std::string& where);

}  // namespace stagecraft
