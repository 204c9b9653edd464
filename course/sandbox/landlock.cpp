#include "course/sandbox/landlock.h"

#ifdef __linux__

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace stagecraft::stages {
namespace {

// The contents of linux/landlock.h, because its older versions lack half of them. The numbers are
// the same on every processor.
constexpr long kCreateRules = 444;
constexpr long kAddRule = 445;
constexpr long kRestrictSelf = 446;
constexpr unsigned kAskVersion = 1;
constexpr int kPathBeneath = 1;

struct Handled {
  std::uint64_t files;
  std::uint64_t network;  // from version 4
  std::uint64_t scoped;   // from version 6
};

struct [[gnu::packed]] PathBeneath {
  std::uint64_t allowed;
  std::int32_t folder;
};

// The rights over files that a version has: 13 in version 1; later versions add moving between
// folders, truncating, and ioctl of devices.
std::uint64_t file_rights(int version) {
  const int n = 13 + (version >= 2) + (version >= 3) + (version >= 5);
  return (std::uint64_t{1} << n) - 1;
}

std::size_t size_of_handled(int version) {
  return sizeof(std::uint64_t) * (1u + (version >= 4) + (version >= 6));
}

}  // namespace

int Landlock::version() {
  const long found = ::syscall(kCreateRules, nullptr, 0, kAskVersion);
  return found > 0 ? static_cast<int>(found) : 0;
}

Landlock::Landlock() {
  const int version = Landlock::version();
  // No rule allows TCP bind or connect, or signals and sockets to processes outside of the sandbox.
  const Handled handled{file_rights(version), 3, 3};
  handled_ = handled.files;
  rules_ = static_cast<int>(::syscall(kCreateRules, &handled, size_of_handled(version), 0));
  if (rules_ < 0) throw Error("landlock: {}", std::strerror(errno));
}

Landlock::~Landlock() { ::close(rules_); }

void Landlock::allow(const std::filesystem::path& path, std::uint64_t rights) {
  constexpr std::uint64_t kOfFiles = 1u << 0 | 1u << 1 | 1u << 2 | 1u << 14;
  const int opened = ::open(path.c_str(), O_PATH | O_CLOEXEC);
  if (opened < 0) return;
  struct stat status {};
  const bool is_folder = ::fstat(opened, &status) == 0 && S_ISDIR(status.st_mode);
  const PathBeneath rule{rights & handled_ & (is_folder ? ~std::uint64_t{0} : kOfFiles), opened};
  const long failed = ::syscall(kAddRule, rules_, kPathBeneath, &rule, 0);
  const int error = errno;
  ::close(opened);
  if (failed != 0) throw Error("{}: landlock: {}", path.string(), std::strerror(error));
}

bool Landlock::enter() const {
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::syscall(kRestrictSelf, rules_, 0) == 0;
}

}  // namespace stagecraft::stages

#else

namespace stagecraft::stages {

int Landlock::version() { return 0; }
Landlock::Landlock() = default;
Landlock::~Landlock() = default;
void Landlock::allow(const std::filesystem::path&, std::uint64_t) {}
bool Landlock::enter() const { return false; }

}  // namespace stagecraft::stages
#endif
