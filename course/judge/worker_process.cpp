#include "course/judge/worker_process.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <thread>

#include "base/error.h"
#include "course/judge/scratch_folder.h"
#include "course/judge/settings.h"
#include "course/sandbox/confinement.h"

namespace stagecraft::stages {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kSeconds = 10;
constexpr unsigned kPatience = 2;  // after this many workers have hung, the others get
constexpr unsigned kSecondsLater = 2;
constexpr double kPatienceInAll = 60.0;  // the same after this many seconds of all workers
constexpr unsigned kMostInAll = 18;      // after this many times a worker's seconds, none is asked
constexpr std::size_t kMaxPrintedLines = 40;
constexpr std::size_t kLinesOfMany = 3;  // enough to find the statement that prints
constexpr std::size_t kMaxPrintedBytes = 16u << 10;
constexpr unsigned kThreads = 64;  // plus two per processor

// Seconds that the next worker gets; 0: no time is left. Code that hangs, sleeps or is slow would
// do so at each of a hundred questions. `spent`: wall-clock seconds of all workers so far.
unsigned seconds_for(unsigned hung_before, double spent) {
  const unsigned all = seconds_of_a_worker();
  if (spent >= kMostInAll * all) return 0;
  const bool patient = hung_before < kPatience && spent < kPatienceInAll;
  return patient ? all : std::min(all, kSecondsLater);
}

// True for the files of a model, but not for a dump beside them.
bool is_of_a_model(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.ends_with(".json") || name.ends_with(".txt") || name.starts_with("model");
}

// Some tests use a script as worker.
bool is_script(const fs::path& worker) {
  std::ifstream in(worker, std::ios::binary);
  return in.get() == '#' && in.get() == '!';
}

// The files that the request names and the worker may read: the paths in its texts, and the model
// files in folders.
std::vector<fs::path> read_by(const Request& request) {
  std::vector<fs::path> found;
  std::map<std::string, std::string> texts = request.texts;
  for (const Request::Other& other : request.others) {
    for (const auto& [name, text] : other.texts) texts[name + " " + text] = text;
  }
  for (const auto& [name, text] : texts) {
    std::error_code none;
    if (!text.starts_with('/') || !fs::exists(text, none)) continue;
    if (!fs::is_directory(text, none)) found.push_back(text);
    for (const auto& entry : fs::directory_iterator(text, none)) {
      if (is_of_a_model(entry.path())) found.push_back(entry.path());
    }
  }
  return found;
}

// The worker's environment: only the paths of libraries, the options of sanitizers and, for a
// script (an emulator's), the paths of programs. They tell about the machine, and a student sees
// what the code prints.
std::vector<std::string> environment(bool is_script) {
  std::vector<std::string> kept = {"PATH=/usr/bin:/bin"};
  if (const char* path = std::getenv("PATH"); is_script && path != nullptr) {
    kept = {fmt::format("PATH={}", path)};
  }
  for (const char* name : {"LD_LIBRARY_PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS"}) {
    if (const char* value = std::getenv(name)) kept.push_back(fmt::format("{}={}", name, value));
  }
  return kept;
}

Confinement confinement(const fs::path& worker, const Request& request, unsigned seconds) {
  Confinement limits;
  limits.seconds = seconds;
#if defined(__SANITIZE_ADDRESS__)
  limits.memory = 0;  // the sanitizer's shadow memory takes terabytes of addresses
#endif
  const fs::path program = is_script(worker) ? "/bin/sh" : worker;
  static std::map<fs::path, std::vector<fs::path>> libraries;  // kept: finding them is slow
  if (!libraries.contains(program)) libraries[program] = libraries_of(program);
  limits.reads = libraries.at(program);
  for (const fs::path& path : read_by(request)) limits.reads.push_back(path);
  limits.programs = {worker, program, own_loader()};
  limits.writes = {"/dev/null"};
  limits.processes = kThreads + 2 * std::thread::hardware_concurrency();
  return limits;
}

// An empty file that the judge makes, for a worker to write.
class File {
 public:
  explicit File(const fs::path& path)
      : file_(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)) {
    if (file_ < 0) throw Error("{}: cannot be made: {}", path.string(), std::strerror(errno));
  }
  ~File() { ::close(file_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int get() const { return file_; }

 private:
  int file_;
};

std::string first_lines(const fs::path& path, std::size_t most) {
  std::ifstream in(path, std::ios::binary);
  std::string text;
  std::string line;
  for (std::size_t n = 0; n < most && std::getline(in, line); ++n) {
    if (text.size() + line.size() > kMaxPrintedBytes) break;
    text += line + "\n";
  }
  return text;
}

double& spent() {
  static double seconds = std::atof(setting("STAGE_SPENT").c_str());  // "" is 0
  return seconds;
}

}  // namespace

double spent_on_workers() { return spent(); }
void count_as_spent(double seconds) { spent() += seconds; }

unsigned seconds_of_a_worker() {
  return static_cast<unsigned>(number_setting("STAGE_SECONDS").value_or(kSeconds));
}

std::size_t most_bytes(const Request& request, std::size_t numbers) {
  for (const auto& [name, tensor] : request.inputs) {
    numbers += request.calls * sizeof(float) * tensor.values.size();
  }
  return numbers + Response::kMaxHeader;
}

Outcome outcome_of(std::optional<int> status, const fs::path& response, unsigned seconds,
                   std::size_t most) {
  Outcome outcome;
  if (!status || (WIFSIGNALED(*status) && WTERMSIG(*status) == SIGXCPU)) {
    outcome.kind = Outcome::Kind::Hung;
    outcome.detail = std::to_string(seconds);
  } else if (WIFSIGNALED(*status)) {
    outcome.kind = Outcome::Kind::Crashed;
    outcome.detail = ::strsignal(WTERMSIG(*status));
  } else if (WEXITSTATUS(*status) != 0 || fs::is_empty(response)) {
    outcome.kind = Outcome::Kind::Exited;
    outcome.detail = std::to_string(WEXITSTATUS(*status));
  } else {
    try {
      const std::size_t size = fs::file_size(response);
      if (size > most) throw Error("{} bytes, expected at most {}", size, most);
      outcome.response = Response::read(response);
    } catch (const std::exception& error) {
      outcome.kind = Outcome::Kind::NoAnswer;
      outcome.detail = error.what();
    }
  }
  return outcome;
}

bool Outcome::divided_by_zero() const {
  return kind == Kind::Crashed && detail == ::strsignal(SIGFPE);
}

bool Outcome::stopped_by_a_trap() const {
  return kind == Kind::Crashed && (detail == ::strsignal(SIGILL) || detail == ::strsignal(SIGTRAP));
}

namespace {

Outcome run_for(unsigned seconds, const fs::path& worker, const Request& request,
                std::size_t most) {
  const ScratchFolder folder;
  const fs::path asked = folder / "request";
  const fs::path response = folder / "response";
  request.write(asked);
  const File answer(response);
  const File printed(folder / "printed");
  most = most_bytes(request, most);
  Confinement limits = confinement(worker, request, seconds);
  limits.file = kMaxPrinted + most;
  limits.reads.push_back(asked);
  limits.writes.push_back(response);
  const Command command{{worker.string(), asked.string(), response.string()},
                        environment(is_script(worker)),
                        printed.get()};
  double used = 0.0;
  const std::optional<int> status = run_confined(command, limits, &used);
  Outcome outcome = outcome_of(status, response, seconds, most);
  outcome.seconds = used;
  outcome.printed_bytes = fs::file_size(folder / "printed");
  outcome.printed_too_much = status && WIFSIGNALED(*status) && WTERMSIG(*status) == SIGXFSZ &&
                             outcome.printed_bytes >= kMaxPrinted;
  const bool is_much = outcome.printed_bytes >= kMuchPrinted;
  outcome.printed = first_lines(folder / "printed", is_much ? kLinesOfMany : kMaxPrintedLines);
  return outcome;
}

}  // namespace

Outcome run_worker(const fs::path& worker, const Request& request, std::size_t most) {
  static unsigned hung = 0;
  const unsigned seconds = seconds_for(hung, spent());
  if (seconds == 0) {
    Outcome late;
    late.kind = Outcome::Kind::Hung;
    late.detail = std::to_string(kMostInAll * seconds_of_a_worker());
    return late;
  }
  const auto begin = std::chrono::steady_clock::now();
  Outcome outcome = run_for(seconds, worker, request, most);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  count_as_spent(took.count());
  hung += outcome.kind == Outcome::Kind::Hung;
  return outcome;
}

Outcome run_in_race(const fs::path& worker, const Request& request) {
  return run_for(seconds_of_a_worker(), worker, request, kMostAnswerBytes);
}

}  // namespace stagecraft::stages
