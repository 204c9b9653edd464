#include "base/atomic_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace stagecraft {

AtomicFile::AtomicFile(std::filesystem::path path, bool replace) : path_(std::move(path)) {
  if (!replace) refuse_existing(path_);
  unfinished_ = path_;
  unfinished_ += fmt::format(".part-{}", ::getpid());
  file_ = std::fopen(unfinished_.c_str(), "wb");
  if (file_ == nullptr) refuse();
}

AtomicFile::~AtomicFile() {
  if (file_ == nullptr) return;  // it has its own name, or never came to be
  std::fclose(file_);
  std::error_code ignored;
  std::filesystem::remove(unfinished_, ignored);
}

void AtomicFile::refuse() const {
  throw Error("{}: cannot be written: {}", printable(path_.string(), 1000), std::strerror(errno));
}

void AtomicFile::write(std::string_view bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) refuse();
  size_ += bytes.size();
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  write(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

void AtomicFile::commit() {
  if (std::fflush(file_) != 0 || ::fsync(::fileno(file_)) != 0) refuse();
  if (std::rename(unfinished_.c_str(), path_.c_str()) != 0) refuse();
  std::fclose(file_);
  file_ = nullptr;
}

void refuse_existing(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::symlink_status(path, ignored).type() ==
      std::filesystem::file_type::not_found) {
    return;
  }
  throw Error("{}: is there already (--force replaces it)", printable(path.string(), 1000));
}

}  // namespace stagecraft
