#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/file_kind.h"

namespace stagecraft {
namespace {

// A descriptor that closes itself, so that no error below leaks it.
class Descriptor {
 public:
  // O_NONBLOCK: opening a FIFO that will be refused must not wait for a writer.
  explicit Descriptor(const std::filesystem::path& path, Pipes pipes = Pipes::Refuse)
      : fd_(::open(path.c_str(),
                   O_RDONLY | O_CLOEXEC | (pipes == Pipes::Refuse ? O_NONBLOCK : 0))) {
    if (fd_ < 0) refuse(path, errno);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { ::close(fd_); }
  int get() const { return fd_; }

 private:
  [[noreturn]] static void refuse(const std::filesystem::path& path, int error) {
    std::error_code none;
    if (error == ENOENT && std::filesystem::is_symlink(path, none)) {
      throw Error("{}: is a link to '{}', which does not exist", path.string(),
                  printable(std::filesystem::read_symlink(path, none).string()));
    }
    throw Error("{}: cannot be opened: {}", path.string(), std::strerror(error));
  }

  int fd_;
};

std::size_t regular_file_size(const Descriptor& file, const std::filesystem::path& path) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) {
    throw Error("{}: cannot be read: {}", path.string(), std::strerror(errno));
  }
  if (S_ISDIR(status.st_mode)) throw Error("{}: expected a file, found a folder", path.string());
  if (!S_ISREG(status.st_mode)) {
    std::error_code ignored;
    throw Error("{}: expected a regular file, found {}", path.string(),
                file_kind(std::filesystem::status(path, ignored).type()));
  }
  return static_cast<std::size_t>(status.st_size);
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) {
  const Descriptor file(path);
  size_ = regular_file_size(file, path);
  if (size_ == 0) return;  // mmap refuses a length of 0; bytes() is empty
  void* address = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (address == MAP_FAILED) {
    throw Error("{}: cannot be mapped: {}", path.string(), std::strerror(errno));
  }
  data_ = static_cast<const std::byte*>(address);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

void MappedFile::fetch_soon(std::span<const std::byte> bytes) {
  static const auto kPage = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<std::uintptr_t>(bytes.data()) / kPage * kPage;
  const auto end = reinterpret_cast<std::uintptr_t>(bytes.data() + bytes.size());
  // Only advice.
  if (first < end) ::madvise(reinterpret_cast<void*>(first), end - first, MADV_WILLNEED);
}

void MappedFile::release_pages() const {
  // Only advice: if the system refuses it, the pages stay until memory is short.
  if (data_ != nullptr) ::madvise(const_cast<std::byte*>(data_), size_, MADV_DONTNEED);
}

void refuse_lfs_pointer(std::string_view text, const std::string& where) {
  if (!text.starts_with("version https://git-lfs.github.com/spec/")) return;
  throw Error("{}: is a Git LFS pointer, not the file itself: fetch it with 'git lfs pull'", where);
}

namespace {

bool is_pipe(const Descriptor& file) {
  struct stat status {};
  return ::fstat(file.get(), &status) == 0 && S_ISFIFO(status.st_mode);
}

// Reads to the end. size: how many bytes are expected; 0 if nobody knows.
std::string read_all(const Descriptor& file, const std::filesystem::path& path,
                     std::size_t max_bytes, std::size_t size) {
  std::string text;
  text.reserve(size);
  for (char part[1 << 16];;) {
    const ssize_t got = ::read(file.get(), part, sizeof part);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw Error("{}: cannot be read: {}", path.string(), std::strerror(errno));
    if (got == 0) return text;
    text.append(part, static_cast<std::size_t>(got));
    if (text.size() > max_bytes) {
      throw Error("{}: expected at most {} bytes, found more", path.string(), max_bytes);
    }
  }
}

}  // namespace

std::string read_text_file(const std::filesystem::path& path, std::size_t max_bytes, Pipes pipes) {
  const Descriptor file(path, pipes);
  const bool from_pipe = pipes == Pipes::Read && is_pipe(file);
  // A file of /proc says that it has 0 bytes, too.
  const std::size_t size = from_pipe ? 0 : regular_file_size(file, path);
  if (size > max_bytes) {
    throw Error("{}: expected at most {} bytes, found {}", path.string(), max_bytes, size);
  }
  std::string text = read_all(file, path, max_bytes, size);
  refuse_lfs_pointer(text, path.string());
  return text;
}

}  // namespace stagecraft
