#include "tests/hostile/run_limited.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "tests/support/temporary_folder.h"

#if defined(__SANITIZE_ADDRESS__)
#define STAGECRAFT_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define STAGECRAFT_ASAN 1
#endif
#endif

namespace stagecraft {
namespace {

constexpr std::chrono::seconds kMostTime{60};  // enough for a busy machine or an emulator

constexpr std::size_t kMostMemory = std::size_t{1} << 30;

void limit_memory() {
#if !defined(STAGECRAFT_ASAN)  // its shadow memory takes terabytes of addresses
  const rlimit limit{kMostMemory, kMostMemory};
  ::setrlimit(RLIMIT_AS, &limit);
#endif
}

[[noreturn]] void become_program(std::vector<char*>& arguments, const TemporaryFolder& folder) {
  const auto redirect = [](const std::string& path, int flags, int to) {
    ::dup2(::open(path.c_str(), flags, 0600), to);
  };
  redirect("/dev/null", O_RDONLY, STDIN_FILENO);
  redirect(folder.file("out"), O_WRONLY | O_CREAT, STDOUT_FILENO);
  redirect(folder.file("err"), O_WRONLY | O_CREAT, STDERR_FILENO);
  limit_memory();
  ::setenv("STAGECRAFT_HOME", "", 1);  // ./stage sets it, and then messages say ./stage
  ::execv(PROGRAM, arguments.data());
  ::_exit(127);
}

// Waits for a child. Kills it after kMostTime and returns false.
bool wait_for(pid_t child, int& status) {
  const auto deadline = std::chrono::steady_clock::now() + kMostTime;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > deadline) {
      ::kill(child, SIGKILL);
      ::waitpid(child, &status, 0);
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace

bool limits_memory() {
  const pid_t child = ::fork();
  if (child == 0) {
    limit_memory();
    void* beyond = ::mmap(nullptr, 2 * kMostMemory, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ::_exit(beyond == MAP_FAILED ? 0 : 1);
  }
  int status = 1;
  ::waitpid(child, &status, 0);
  return status == 0;
}

LimitedRun run_limited(const std::vector<std::string>& arguments) {
  const TemporaryFolder folder;
  std::string program = PROGRAM;
  std::vector<std::string> owned = arguments;
  std::vector<char*> pointers = {program.data()};
  for (std::string& argument : owned) pointers.push_back(argument.data());
  pointers.push_back(nullptr);

  const pid_t child = ::fork();
  if (child == 0) become_program(pointers, folder);
  int status = 0;
  LimitedRun run;
  if (child < 0) {
    run.ended_by = "fork";
  } else if (!wait_for(child, status)) {
    run.ended_by = "the clock";
  } else if (WIFSIGNALED(status)) {
    run.ended_by = "signal " + std::to_string(WTERMSIG(status));
  } else {
    run.code = WEXITSTATUS(status);
  }
  run.out = read_file(folder.file("out"));
  run.err = read_file(folder.file("err"));
  return run;
}

}  // namespace stagecraft
