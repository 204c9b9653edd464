// Runs a command, confined as far as this machine can. course/sandbox/confine.py calls it.
//
//   confine [--read PATH | --execute PATH | --write PATH]... [--libraries] [--starts-processes]
//           [--seconds N] [--memory BYTES] [--resident BYTES]
//           [--file BYTES] [--open-files N] [--processes N]
//           [--parent PID] -- COMMAND [ARGUMENT...]
//   confine --limits-only [--seconds N]... -- COMMAND [ARGUMENT...]
//                         for the gate: the limits without a sandbox, and the whole environment
//   confine --why         prints why commands cannot be confined here; prints nothing, with exit
//                         code 0, if they can
//
// --parent: when this process, which starts confine, ends, the command and all it started end, too.
// The exit code is that of the command, 128 + the signal that ended it, 124 if it exceeded its time
// or its memory, or 125 if it could not be started. (If a command itself exits with 124 or 125:
// 123.)
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "base/error.h"
#include "course/sandbox/confinement.h"

namespace stagecraft::stages {
namespace {

constexpr int kTooLong = 124;
constexpr int kNotStarted = 125;
constexpr int kOneOfOurs = 123;

std::uint64_t number(const std::string& option, const std::string& text) {
  if (text.empty() || text.size() > 18 || text.find_first_not_of("0123456789") != text.npos) {
    throw Error("{}: expected a number, found '{}'", option, printable(text));
  }
  return std::stoull(text);
}

// Finds a name without '/' in the folders of PATH.
std::string found_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::string rest = name.find('/') == name.npos && path != nullptr ? path : "";
  while (!rest.empty()) {
    const std::string folder = rest.substr(0, rest.find(':'));
    rest = rest.size() > folder.size() ? rest.substr(folder.size() + 1) : "";
    if (::access((folder + "/" + name).c_str(), X_OK) == 0) return folder + "/" + name;
  }
  return name;
}

void take(const std::string& option, const std::string& value, Confinement& confinement) {
  if (option == "--read") {
    confinement.reads.push_back(value);
  } else if (option == "--execute") {
    confinement.programs.push_back(value);
  } else if (option == "--write") {
    if (!std::filesystem::exists(value)) throw Error("--write {}: does not exist", value);
    confinement.writes.push_back(value);
  } else if (option == "--seconds") {
    confinement.seconds = static_cast<unsigned>(number(option, value));
  } else if (option == "--memory") {
    confinement.memory = number(option, value);
  } else if (option == "--resident") {
    confinement.resident = number(option, value);
  } else if (option == "--file") {
    confinement.file = number(option, value);
  } else if (option == "--open-files") {
    confinement.open_files = static_cast<unsigned>(number(option, value));
  } else if (option == "--processes") {
    confinement.processes = static_cast<unsigned>(number(option, value));
  } else if (option == "--parent") {
    end_with(static_cast<int>(number(option, value)));
  } else {
    throw Error("confine: unknown option '{}'", printable(option));
  }
}

// The variables that compilers and sanitizers need, without the judge's secrets. TMPDIR is a folder
// that may be written to.
std::vector<std::string> environment(const Confinement& confinement) {
  std::vector<std::string> kept;
  // No locale: compilers speak English, because the course reads what they say.
  for (const char* name :
       {"PATH", "LD_LIBRARY_PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS", "SOURCE_DATE_EPOCH"}) {
    if (const char* value = std::getenv(name)) kept.push_back(fmt::format("{}={}", name, value));
  }
  for (const std::filesystem::path& path : confinement.writes) {
    if (!std::filesystem::is_directory(path)) continue;
    kept.push_back(fmt::format("TMPDIR={}", path.string()));
    kept.push_back(fmt::format("HOME={}", path.string()));  // needed where c++ is a link to ccache
    break;
  }
  return kept;
}

std::vector<std::string> own_environment() {
  std::vector<std::string> all;
  for (char** one = ::environ; *one != nullptr; ++one) all.emplace_back(*one);
  return all;
}

int run(const std::vector<std::string>& words) {
  if (words.size() == 1 && words[0] == "--why") {
    const std::string why = not_confined_because();
    if (why.empty()) return 0;
    fmt::print("{}\n", why);
    return 1;
  }
  Confinement confinement;
  bool with_libraries = false;
  std::size_t at = 0;
  while (at < words.size() && words[at] != "--") {
    if (words[at] == "--starts-processes") {
      confinement.starts_processes = true;
      ++at;
      continue;
    }
    if (words[at] == "--limits-only") {
      confinement.limits_only = true;
      ++at;
      continue;
    }
    if (words[at] == "--libraries") {
      with_libraries = true;
      ++at;
      continue;
    }
    if (at + 1 == words.size()) throw Error("confine: {}: expected a value", printable(words[at]));
    take(words[at], words[at + 1], confinement);
    at += 2;
  }
  Command command;
  for (++at; at < words.size(); ++at) command.words.push_back(words[at]);
  if (command.words.empty()) throw Error("confine: expected -- and a command");
  command.words[0] = found_program(command.words[0]);
  if (with_libraries) {
    for (const auto& path : libraries_of(command.words[0])) confinement.reads.push_back(path);
    confinement.programs.push_back(own_loader());
  }
  command.environment = confinement.limits_only ? own_environment() : environment(confinement);
  const std::optional<int> status = run_confined(command, confinement);
  if (!status) return kTooLong;
  if (WIFSIGNALED(*status)) return 128 + WTERMSIG(*status);
  const int code = WEXITSTATUS(*status);
  return code == kTooLong || code == kNotStarted ? kOneOfOurs : code;
}

}  // namespace
}  // namespace stagecraft::stages

int main(int argc, char** argv) {
  try {
    stagecraft::stages::guard_own_memory();
    return stagecraft::stages::run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "stagecraft: %s\n", error.what());
    return stagecraft::stages::kNotStarted;
  }
}
