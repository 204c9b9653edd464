#include "course/sandbox/confinement.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/error.h"
#include "course/sandbox/landlock.h"
#include "course/sandbox/syscall_filter.h"

#ifdef __linux__
#include <grp.h>
#include <link.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif

namespace stagecraft::stages {
namespace {

namespace fs = std::filesystem;

struct Limit {
  decltype(RLIMIT_CPU) resource;
  rlim_t value;
  rlim_t hard;
};

constexpr int kEndings[] = {SIGTERM, SIGINT, SIGHUP};
std::atomic<pid_t> group = 0;  // the process group that ends with this process; 0: none
static_assert(std::atomic<pid_t>::is_always_lock_free);  // a signal handler reads it

bool adopts_orphans = false;  // orphans of a command become children of this process

// Kills the children that /proc lists. Calls only async-signal-safe functions.
void kill_children() {
  const int file = ::open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
  char text[4096];
  const ssize_t size = file < 0 ? 0 : ::read(file, text, sizeof text);
  if (file >= 0) ::close(file);
  pid_t pid = 0;
  for (ssize_t i = 0; i < size; ++i) {  // "17 18 "; the last number may be cut
    if (text[i] >= '0' && text[i] <= '9') {
      pid = 10 * pid + (text[i] - '0');
    } else {
      if (pid > 0) ::kill(pid, SIGKILL);
      pid = 0;
    }
  }
}

// Waits until all descendants of this process have ended; after `patience` milliseconds, kills
// those that remain.
void end_descendants(int patience) {
  constexpr int kLongest = 5000;  // a process that hangs inside the kernel cannot be killed
  const timespec millisecond{0, 1'000'000};
  for (int waited = 0; waited < kLongest; ++waited) {
    pid_t ended = 0;
    while ((ended = ::waitpid(-1, nullptr, WNOHANG)) > 0) {
    }
    if (ended < 0) return;  // there are no children
    if (waited >= patience) kill_children();
    ::nanosleep(&millisecond, nullptr);
  }
}

// SIGTERM first: at SIGTERM, a build deletes files that are not finished.
void end_all(int signal) {
  if (group > 0) ::kill(-group, SIGTERM);
  end_descendants(adopts_orphans ? 2000 : 0);
  if (group > 0) ::kill(-group, SIGKILL);
  ::_exit(128 + signal);
}

// While this object lives, the signals in kEndings are blocked.
class NoEndings {
 public:
  NoEndings() {
    sigset_t endings;
    ::sigemptyset(&endings);
    for (const int signal : kEndings) ::sigaddset(&endings, signal);
    ::pthread_sigmask(SIG_BLOCK, &endings, &before_);
  }
  ~NoEndings() { restore(); }
  NoEndings(const NoEndings&) = delete;
  NoEndings& operator=(const NoEndings&) = delete;
  void restore() const { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

// The number of all processes and threads on the machine: an upper bound for those of this user.
[[maybe_unused]] unsigned running_now() {
  std::ifstream in("/proc/loadavg");  // "0.20 0.18 0.12 1/80 11206"
  std::string skipped;
  unsigned running = 0;
  unsigned all = 0;
  char slash = 0;
  in >> skipped >> skipped >> skipped >> running >> slash >> all;
  return all;
}

std::vector<Limit> limits_of(const Confinement& confinement) {
  std::vector<Limit> limits{{RLIMIT_CORE, 0, 0}};
  const auto add = [&](auto resource, rlim_t value) {
    if (value == 0) return;
    limits.push_back({resource, value, confinement.limits_only ? RLIM_INFINITY : value});
  };
  if (!confinement.limits_only && confinement.seconds != 0) {
    limits.push_back({RLIMIT_CPU, confinement.seconds, confinement.seconds + 1});  // SIGXCPU first
  }
#if !defined(__SANITIZE_ADDRESS__)  // its shadow memory takes terabytes of addresses
  add(RLIMIT_AS, confinement.memory);
#else
  if (!confinement.limits_only) add(RLIMIT_AS, confinement.memory);
#endif
  add(RLIMIT_FSIZE, confinement.file);
  add(RLIMIT_NOFILE, confinement.open_files);
#ifdef __linux__
  if (confinement.processes != 0) add(RLIMIT_NPROC, running_now() + confinement.processes);
#endif
  return limits;
}

// Prepares everything that a child does between fork and exec, where it must not allocate memory.
class Restrictions {
 public:
  explicit Restrictions(const Confinement& confinement)
      : limits_(limits_of(confinement)),
        compiles_(confinement.starts_processes),
        processes_(confinement.processes) {
#ifdef STAGECRAFT_CAN_FILTER_SYSCALLS
    if (confinement.limits_only || !not_confined_because().empty()) return;
    landlock_.emplace();
    filter_.emplace(confinement.starts_processes);
    for (const fs::path& path : confinement.reads) landlock_->may_read(path);
    for (const fs::path& path : confinement.programs) landlock_->may_execute(path);
    for (const fs::path& path : confinement.writes) landlock_->may_write(path);
#endif
  }

  // program: the program that will be executed. Returns the step that failed, or nullptr.
  const char* enter([[maybe_unused]] const char* program) {
    ::setpgid(0, 0);  // so that everything it starts can be killed with it
    keep_files_to_itself();
#ifdef __linux__
    if (landlock_) give_up_root();
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent_) ::_exit(127);  // the parent ended before the prctl
#endif
    for (const Limit& limit : limits_) {
      rlimit now{};
      ::getrlimit(limit.resource, &now);
      const bool counts_alone = limit.resource == RLIMIT_NPROC && has_own_user_;
      const auto [value, hard] =
          counts_alone ? std::pair(processes_, processes_) : std::pair(limit.value, limit.hard);
      now = {std::min(value, now.rlim_max), std::min(hard, now.rlim_max)};
      if (::setrlimit(limit.resource, &now) != 0 && landlock_) return "setrlimit";
    }
    if (landlock_ && !landlock_->enter()) return "landlock";
#ifdef STAGECRAFT_CAN_FILTER_SYSCALLS
    if (filter_ && !filter_->enter(program)) return "seccomp";
#endif
    return nullptr;
  }

 private:
  static void keep_files_to_itself() {
#if defined(__linux__) && defined(SYS_close_range)
    constexpr unsigned kCloseOnExec = 4;
    if (::syscall(SYS_close_range, 3u, ~0u, kCloseOnExec) == 0) return;
#endif
    for (int file = 3; file < 1024; ++file) ::fcntl(file, F_SETFD, FD_CLOEXEC);
  }

#ifdef __linux__
  // Root gives up its rights and, unless the command compiles, its user id. It keeps the right to
  // enter folders that are closed to others: a repository may be in /root, and Landlock decides
  // which files may be opened. (A compiler asks access(2) where it may write, and access checks the
  // user id.)
  //
  // The kernel counts threads per user. So each program gets a user of its own, or one student's
  // threads could use up those of another student: kFirstUser plus its process id. Neither people
  // nor services nor containers get ids from this range (systemd.io/UIDS-GIDS). Where the kernel
  // does not have these users, as in some containers, the user is "nobody", and where it does not
  // have this one either, root's id stays.
  void give_up_root() {
    if (::geteuid() != 0) return;
    constexpr unsigned kNobody = 65534;
    constexpr unsigned kFirstUser = 0x70000000;  // process ids are less than 2^22
    constexpr unsigned kPassFolders = 1u << CAP_DAC_OVERRIDE;
    if (!compiles_) {
      ::syscall(SYS_setgroups, 0, nullptr);
      ::prctl(PR_SET_KEEPCAPS, 1);
      ::syscall(SYS_setresgid, kNobody, kNobody, kNobody);
      const unsigned own = kFirstUser + static_cast<unsigned>(::syscall(SYS_getpid));
      has_own_user_ = ::syscall(SYS_setresuid, own, own, own) == 0;
      if (!has_own_user_) ::syscall(SYS_setresuid, kNobody, kNobody, kNobody);
    }
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct rights[2] = {{kPassFolders, kPassFolders, kPassFolders}, {}};
    if (::syscall(SYS_capset, &header, rights) == 0) {
      ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_DAC_OVERRIDE, 0, 0);
    } else {
      rights[0] = {};
      ::syscall(SYS_capset, &header, rights);
    }
  }
#endif

  std::vector<Limit> limits_;
  [[maybe_unused]] bool compiles_;
  [[maybe_unused]] bool has_own_user_ = false;  // which has no other process
  [[maybe_unused]] rlim_t processes_;
  [[maybe_unused]] pid_t parent_ = ::getpid();
  std::optional<Landlock> landlock_;
#ifdef STAGECRAFT_CAN_FILTER_SYSCALLS
  std::optional<SyscallFilter> filter_;
#endif
};

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> found;
  for (const std::string& text : texts) found.push_back(const_cast<char*>(text.c_str()));
  found.push_back(nullptr);
  return found;
}

struct Failure {
  const char* step;
  int error;
};

[[noreturn]] void become(const Command& command, char* const* words, char* const* environment,
                         Restrictions& restrictions, const NoEndings& signals, int report) {
  for (const int signal : kEndings) ::signal(signal, SIG_DFL);
  signals.restore();
  const int nothing = ::open("/dev/null", O_RDONLY);
  ::dup2(nothing, STDIN_FILENO);
  if (command.output >= 0) {
    ::dup2(command.output, STDOUT_FILENO);
    ::dup2(command.output, STDERR_FILENO);
  }
  Failure failure{restrictions.enter(words[0]), errno};
  if (failure.step == nullptr) {
    ::execve(words[0], words, environment);
    failure = {"execve", errno};
  }
  [[maybe_unused]] const ssize_t written = ::write(report, &failure, sizeof failure);
  ::_exit(127);
}

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

// Waits for the end of a child. One call waits for at most 20 milliseconds.
class End {
 public:
#if defined(__linux__) && defined(SYS_pidfd_open)
  explicit End(pid_t child) : file_(static_cast<int>(::syscall(SYS_pidfd_open, child, 0))) {}
#else
  explicit End(pid_t) {}
#endif
  ~End() {
    if (file_ >= 0) ::close(file_);
  }
  End(const End&) = delete;
  End& operator=(const End&) = delete;

  void wait() {
    constexpr auto kLongestPause = std::chrono::milliseconds(20);
    pollfd ended{file_, POLLIN, 0};
    if (file_ >= 0 && ::poll(&ended, 1, kLongestPause.count()) >= 0) return;
    std::this_thread::sleep_for(pause_);
    pause_ = std::min<std::chrono::microseconds>(pause_ * 2, kLongestPause);
  }

 private:
  int file_ = -1;  // a pidfd, readable when the child ends; -1: not supported, and wait() sleeps
  std::chrono::microseconds pause_{200};
};

// The real memory of a process in bytes; 0 if the system does not say.
std::uint64_t resident_bytes(pid_t process) {
  std::ifstream statm("/proc/" + std::to_string(process) + "/statm");
  std::uint64_t addresses = 0, resident = 0;
  statm >> addresses >> resident;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

// The status of the child, or nullopt if it was killed: after `seconds` (0: no limit), or because
// it had more than `resident` bytes of real memory (0: no limit).
std::optional<int> wait_for(pid_t child, unsigned seconds, std::uint64_t resident, double* used) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::seconds(seconds);
  End end(child);
  int status = 0;
  rusage usage{};
  while (::wait4(child, &status, WNOHANG, &usage) == 0) {
    const bool is_large = resident != 0 && resident_bytes(child) > resident;
    if (is_large || (seconds != 0 && Clock::now() > deadline)) {
      ::kill(-child, SIGKILL);
      ::waitpid(child, &status, 0);
      return std::nullopt;
    }
    end.wait();
  }
  ::kill(-child, SIGKILL);  // all that it left running
  if (used != nullptr) *used = seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
  return status;
}

}  // namespace

std::string not_confined_because() {
#if defined(__SANITIZE_ADDRESS__)
  return "this build has AddressSanitizer, which needs more address space than a confined process "
         "gets";
#elif defined(STAGECRAFT_CAN_FILTER_SYSCALLS)
  if (Landlock::version() == 0) return "this kernel runs no Landlock (Linux 5.13 or newer)";
  if (::prctl(PR_GET_SECCOMP) < 0) return "this kernel has no seccomp";
  return {};
#else
  return "confinement needs Linux on x86-64 or aarch64";
#endif
}

#ifdef __linux__
fs::path own_loader() {
  std::string found;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& header = info->dlpi_phdr[i];
          if (header.p_type != PT_INTERP) continue;
          *static_cast<std::string*>(data) =
              reinterpret_cast<const char*>(info->dlpi_addr + header.p_vaddr);
        }
        return 1;  // the first is the program itself
      },
      &found);
  return found;
}

// The leak check of AddressSanitizer reads the memory from another process.
void guard_own_memory() {
#if !defined(__SANITIZE_ADDRESS__)
  ::prctl(PR_SET_DUMPABLE, 0);
#endif
}
#else
std::vector<fs::path> libraries_of(const fs::path&) { return {}; }
fs::path own_loader() { return {}; }
void guard_own_memory() {}
#endif

void end_with(int parent) {
  for (const int signal : kEndings) ::signal(signal, end_all);
#ifdef __linux__
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  adopts_orphans = ::prctl(PR_SET_CHILD_SUBREAPER, 1) == 0;
#endif
  if (::getppid() != parent) throw Error("process {}, which started this one, has ended", parent);
}

std::optional<int> run_confined(const Command& command, const Confinement& confinement,
                                double* seconds) {
  Restrictions restrictions(confinement);
  const std::vector<char*> words = pointers(command.words);
  const std::vector<char*> environment = pointers(command.environment);
  int report[2];
  if (::pipe(report) != 0) throw Error("{}: {}", command.words[0], std::strerror(errno));
  pid_t child = -1;
  int error = 0;
  {
    const NoEndings signals;
#ifdef __linux__
    // fork() copies the page tables of the judge, which takes longer than most workers run. After
    // vfork() the child uses the judge's memory, and the judge waits until the child executes. So
    // the child must not return from this function, and must not change what the judge reads.
    child = ::vfork();
#else
    child = ::fork();
#endif
    error = errno;
    if (child == 0)
      become(command, words.data(), environment.data(), restrictions, signals, report[1]);
    group = std::max(child, 0);
  }
  ::close(report[1]);
  Failure failure{};
  const bool failed = child > 0 && ::read(report[0], &failure, sizeof failure) > 0;
  ::close(report[0]);
  if (child < 0) throw Error("{}: cannot be started: {}", command.words[0], std::strerror(error));
  const std::optional<int> status =
      wait_for(child, confinement.seconds, confinement.resident, seconds);
  if (adopts_orphans) end_descendants(0);
  group = 0;
  if (failed) {
    throw Error("{}: cannot be started: {}: {}", command.words[0], failure.step,
                std::strerror(failure.error));
  }
  return status;
}

#ifdef __linux__
std::vector<fs::path> libraries_of(const fs::path& program) {
  int ends[2];  // a pipe has room for the list of any program's libraries
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) throw Error("pipe: {}", std::strerror(errno));
  Command list{{own_loader().string(), "--list", program.string()}, {}, ends[1]};
  if (const char* path = std::getenv("LD_LIBRARY_PATH")) {
    list.environment.push_back(fmt::format("LD_LIBRARY_PATH={}", path));
  }
  Confinement limits;
  limits.reads = {"/etc/ld.so.cache", "/usr", "/lib", "/lib64", program};
  limits.programs = {own_loader()};
  run_confined(list, limits);
  std::string said(std::size_t{64} << 10, '\0');
  const ssize_t size = ::read(ends[0], said.data(), said.size());
  for (const int end : ends) ::close(end);
  said.resize(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));

  std::vector<fs::path> found{"/etc/ld.so.cache", "/dev/null", "/dev/urandom"};
  std::istringstream lines(said);
  for (std::string line; std::getline(lines, line);) {  // "\tlibm.so.6 => /lib/libm.so.6 (0x7f...)"
    const std::size_t begin = line.find('/');
    const std::size_t end = line.rfind(" (0x");
    if (begin < end && end != line.npos) found.push_back(line.substr(begin, end - begin));
  }
  return found;
}
#endif

}  // namespace stagecraft::stages
