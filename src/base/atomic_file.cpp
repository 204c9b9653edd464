#include "base/atomic_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/file_kind.h"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

}  // namespace

AtomicFile::AtomicFile(std::filesystem::path path, bool replace)
    : path_(std::move(path)), replace_(replace) {
  if (!replace) refuse_existing(path_);
  refuse_other_kinds(path_, fs::file_type::regular);
  if (fs::is_symlink(path_)) path_ = fs::canonical(path_);
  unfinished_ = path_;
  unfinished_ += fmt::format(".part-{}", ::getpid());
  // A file of this name is left over from a program that was killed: in a container, the same id of
  // a process comes again. It is removed, not opened, because it could be a link.
  std::error_code failed;
  fs::remove(unfinished_, failed);
  file_ = std::fopen(unfinished_.c_str(), "wbx");
  if (file_ == nullptr) refuse();
  struct stat replaced;
  if (::stat(path_.c_str(), &replaced) == 0) ::fchmod(::fileno(file_), replaced.st_mode & 07777);
}

AtomicFile::~AtomicFile() {
  if (file_ == nullptr) return;  // it was renamed, or never opened
  std::fclose(file_);
  std::error_code ignored;
  std::filesystem::remove(unfinished_, ignored);
}

void AtomicFile::refuse() const {
  throw Error("{}: cannot be written: {}", printable(path_.string(), 1000), std::strerror(errno));
}

void AtomicFile::write(std::string_view bytes) {
  if (bytes.empty()) return;  // fwrite must not be given a null pointer
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) refuse();
  size_ += bytes.size();
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  write(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

void AtomicFile::commit() {
  if (std::fflush(file_) != 0 || ::fsync(::fileno(file_)) != 0) refuse();
  if (!replace_ && ::link(unfinished_.c_str(), path_.c_str()) == 0) {
    ::unlink(unfinished_.c_str());
  } else {
    if (!replace_) refuse_existing(path_);  // if nothing is there, the disk has no hard links
    if (std::rename(unfinished_.c_str(), path_.c_str()) != 0) refuse();
  }
  std::fclose(file_);
  file_ = nullptr;
}

void refuse_existing(const std::filesystem::path& path) {
  std::error_code failed;
  const fs::file_type type = fs::symlink_status(path, failed).type();
  if (type == fs::file_type::not_found) return;
  const std::string name = printable(path.string(), 1000);
  if (type == fs::file_type::none) throw Error("{}: cannot be written: {}", name, failed.message());
  throw Error("{}: already exists (--force replaces it)", name);
}

void refuse_other_kinds(const std::filesystem::path& path, std::filesystem::file_type expected) {
  std::error_code failed;
  fs::file_type type = fs::status(path, failed).type();
  const std::string name = printable(path.string(), 1000);
  if (type == fs::file_type::none) throw Error("{}: cannot be written: {}", name, failed.message());
  if (type == fs::file_type::not_found) type = fs::symlink_status(path, failed).type();
  if (type == expected || type == fs::file_type::not_found) return;
  throw Error("{}: expected {}, found {}", name, file_kind(expected), file_kind(type));
}

}  // namespace stagecraft
