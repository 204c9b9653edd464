#include "tests/gates/worker_process.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/error.h"

namespace stagecraft::stages {
namespace {

namespace fs = std::filesystem;

constexpr int kSeconds = 10;
constexpr rlim_t kMaxMemory = rlim_t{2} << 30;
constexpr rlim_t kMaxFile = rlim_t{64} << 20;
constexpr std::size_t kMaxPrintedLines = 40;
constexpr std::size_t kMaxPrintedBytes = 16u << 10;

// A folder that is gone when the case is over.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name = (fs::temp_directory_path() / "stagecraft-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw Error("{}: cannot be made", name);
    path_ = name;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  fs::path operator/(const char* name) const { return path_ / name; }

 private:
  fs::path path_;
};

void limit(int resource, rlim_t value) {
  const rlimit both{value, value};
  ::setrlimit(resource, &both);
}

[[noreturn]] void become(const fs::path& worker, const fs::path& request, const fs::path& response,
                         const fs::path& printed) {
  const int out = ::open(printed.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  const int in = ::open("/dev/null", O_RDONLY);
  ::dup2(in, STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(out, STDERR_FILENO);
  ::unsetenv("STAGE_SEED");  // who knows the seed knows the questions
  ::setpgid(0, 0);           // so that whatever it starts can be ended with it
  limit(RLIMIT_CPU, kSeconds);
  limit(RLIMIT_FSIZE, kMaxFile);
  limit(RLIMIT_CORE, 0);
#if !defined(__SANITIZE_ADDRESS__)
  limit(RLIMIT_AS, kMaxMemory);  // the sanitizer's own shadow takes terabytes of addresses
#endif
  ::execl(worker.c_str(), worker.c_str(), request.c_str(), response.c_str(), nullptr);
  ::_exit(127);
}

// The status of the child, or nullopt if it had to be killed.
std::optional<int> wait_for(pid_t child) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::seconds(kSeconds);
  auto pause = std::chrono::microseconds(200);
  int status = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    if (Clock::now() > deadline) {
      ::kill(-child, SIGKILL);
      ::waitpid(child, &status, 0);
      return std::nullopt;
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(20'000));
  }
  ::kill(-child, SIGKILL);  // what it may have left running
  return status;
}

std::string first_lines(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text;
  std::string line;
  for (std::size_t n = 0; n < kMaxPrintedLines && std::getline(in, line); ++n) {
    if (text.size() + line.size() > kMaxPrintedBytes) break;
    text += line + "\n";
  }
  return text;
}

void judge_status(std::optional<int> status, const fs::path& response, Outcome& outcome) {
  if (!status || (WIFSIGNALED(*status) && WTERMSIG(*status) == SIGXCPU)) {
    outcome.kind = Outcome::Kind::Hung;
    outcome.detail = std::to_string(kSeconds);
  } else if (WIFSIGNALED(*status)) {
    outcome.kind = Outcome::Kind::Crashed;
    outcome.detail = ::strsignal(WTERMSIG(*status));
  } else if (WEXITSTATUS(*status) != 0 || !fs::exists(response)) {
    outcome.kind = Outcome::Kind::Exited;
    outcome.detail = std::to_string(WEXITSTATUS(*status));
  } else {
    try {
      outcome.response = Response::read(response);
    } catch (const std::exception& error) {
      outcome.kind = Outcome::Kind::NoAnswer;
      outcome.detail = error.what();
    }
  }
}

}  // namespace

Outcome run_worker(const fs::path& worker, const Request& request) {
  const ScratchFolder folder;
  request.write(folder / "request");
  const pid_t child = ::fork();
  if (child < 0) throw Error("a worker cannot be started: {}", std::strerror(errno));
  if (child == 0) become(worker, folder / "request", folder / "response", folder / "printed");
  const std::optional<int> status = wait_for(child);
  Outcome outcome;
  judge_status(status, folder / "response", outcome);
  outcome.printed = first_lines(folder / "printed");
  return outcome;
}

}  // namespace stagecraft::stages
