#pragma once

#include <cstdint>
#include <filesystem>

namespace stagecraft::stages {

// Limits the files that a process may use, with the kernel's Landlock (Linux 5.13 and newer).
class Landlock {
 public:
  // The version of the running kernel, from 1; 0: no Landlock, or not Linux.
  static int version();

  Landlock();
  ~Landlock();
  Landlock(const Landlock&) = delete;
  Landlock& operator=(const Landlock&) = delete;

  // A file, or a folder and all below it. A path that does not exist is ignored.
  void may_read(const std::filesystem::path& path) { allow(path, kRead); }
  void may_execute(const std::filesystem::path& path) { allow(path, kRead | kExecute); }
  void may_write(const std::filesystem::path& path) { allow(path, kRead | kWrite); }

  // From this call on, this process and everything it starts have these rights and no others. It is
  // called between fork and exec, so it calls only async-signal-safe functions. Returns false if
  // the kernel refused.
  bool enter() const;

 private:
  static constexpr std::uint64_t kExecute = 1u << 0;
  static constexpr std::uint64_t kRead = 1u << 2 | 1u << 3;  // read files and list folders
  // Write and truncate files; in a folder also remove, make, move and link files (ccache locks with
  // links), but not make devices, pipes or sockets.
  static constexpr std::uint64_t kWrite =
      1u << 1 | 1u << 14 | 1u << 4 | 1u << 5 | 1u << 7 | 1u << 8 | 1u << 12 | 1u << 13;

  void allow(const std::filesystem::path& path, std::uint64_t rights);

  [[maybe_unused]] int rules_ = -1;
  [[maybe_unused]] std::uint64_t handled_ = 0;
};

}  // namespace stagecraft::stages
