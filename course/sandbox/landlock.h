#pragma once

#include <cstdint>
#include <filesystem>

namespace stagecraft::stages {

// The files that a process may use, by the kernel's Landlock (Linux 5.13 and newer).
class Landlock {
 public:
  // The version that runs here, from 1; 0: none, or not Linux.
  static int version();

  Landlock();
  ~Landlock();
  Landlock(const Landlock&) = delete;
  Landlock& operator=(const Landlock&) = delete;

  // A file, or a folder and all that is below. What does not exist gives no right.
  void may_read(const std::filesystem::path& path) { allow(path, kRead); }
  void may_execute(const std::filesystem::path& path) { allow(path, kRead | kExecute); }
  void may_write(const std::filesystem::path& path) { allow(path, kRead | kWrite); }

  // From here on this process, and whatever it starts, has these rights and no others. Between fork
  // and exec: calls nothing that is not safe there. Returns whether the kernel agreed.
  bool enter() const;

 private:
  static constexpr std::uint64_t kExecute = 1u << 0;
  static constexpr std::uint64_t kRead = 1u << 2 | 1u << 3;  // files and folders
  // Files: written, cut; in a folder also: removed, made, moved, links made (ccache locks by them),
  // but no devices, pipes or sockets.
  static constexpr std::uint64_t kWrite =
      1u << 1 | 1u << 14 | 1u << 4 | 1u << 5 | 1u << 7 | 1u << 8 | 1u << 12 | 1u << 13;

  void allow(const std::filesystem::path& path, std::uint64_t rights);

  [[maybe_unused]] int rules_ = -1;
  [[maybe_unused]] std::uint64_t handled_ = 0;
};

}  // namespace stagecraft::stages
