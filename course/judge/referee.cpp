#include "course/judge/referee.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <set>

#include "base/error.h"
#include "course/judge/alike.h"
#include "course/judge/known_answers.h"
#include "course/judge/scratch_folder.h"
#include "course/judge/settings.h"

extern char** environ;  // NOLINT: no POSIX header declares it

namespace stagecraft::stages {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostCases = 16;                     // unless STAGE_MOST_CASES is set
constexpr std::uint64_t kOtherSeed = 0x9e3779b97f4a7c15u;  // new numbers for fresh cases

Score& current() {
  static Score found;
  return found;
}

std::string& own_program() {
  static std::string path;
  return path;
}

// Large cases find mistakes that depend on a size. Such mistakes have no names, and large cases
// take most of the time.
bool is_large(const Request& request) {
  constexpr std::size_t kMostNumbers = 5000;
  std::size_t n = 0;
  for (const auto& [name, tensor] : request.inputs) n += tensor.values.size();
  for (const Request::Other& other : request.others) {
    for (const auto& [name, tensor] : other.inputs) n += tensor.values.size();
  }
  return n > kMostNumbers;
}

// The environment, with these entries added or replaced.
std::vector<std::string> environment_with(const std::vector<std::string>& entries) {
  std::vector<std::string> all = entries;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::string name = text.substr(0, text.find('=') + 1);
    const bool replaced = std::ranges::any_of(
        entries, [&](const std::string& other) { return other.starts_with(name); });
    if (!replaced) all.push_back(text);
  }
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> all;
  for (std::string& word : words) all.push_back(word.data());
  all.push_back(nullptr);
  return all;
}

// Runs this program again, without output.
void run_gate(std::vector<std::string> words, std::vector<std::string> environment) {
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int failed = ::posix_spawn(&child, words[0].c_str(), &files, nullptr,
                                   pointers(words).data(), pointers(environment).data());
  ::posix_spawn_file_actions_destroy(&files);
  if (failed == 0) ::waitpid(child, nullptr, 0);
}

}  // namespace

bool is_referee() {
  static const bool is = std::getenv("STAGE_REFEREE") != nullptr;
  return is;
}

void referee(const Case& question, const FindProblem& find_problem) {
  static const std::string a = setting("STAGE_REFEREE"), b = setting("STAGE_REFEREE_B");
  Score& found = current();
  ++found.cases;
  static const std::size_t most = number_setting("STAGE_MOST_CASES").value_or(kMostCases);
  if (a.empty() || question.request.at_once || is_large(question.request)) return;
  if (found.differ >= most) return;
  static std::set<std::string> hung;  // functions; wait only once for each
  if (hung.contains(question.request.function)) return;
  const Outcome first = ask_known(a, question.request);
  const Outcome second = ask_known(b, question.request);
  const auto both_right = [&] {
    return find_problem(first).empty() && find_problem(second).empty();
  };
  const bool same = alike(question, first, second) || both_right();  // right in different words
  found.lines.push_back({question.name, same});
  if (first.kind == Outcome::Kind::Hung || second.kind == Outcome::Kind::Hung) {
    hung.insert(question.request.function);
  }
  if (same) return;
  ++found.differ;
  const Outcome judged = ask_known(worker(), question.request);
  found.first += alike(question, judged, first);
  found.second += alike(question, judged, second);
}

const Score& score() { return current(); }

void Score::write() const {
  const std::string path = setting("STAGE_SCORE");
  if (path.empty()) return;
  std::ofstream out(path);
  out << cases << ' ' << differ << ' ' << first << ' ' << second << '\n';
  for (const Line& line : lines) out << line.same << ' ' << line.question << '\n';
}

Score Score::read(const fs::path& path) {
  Score found;
  std::ifstream in(path);
  in >> found.cases >> found.differ >> found.first >> found.second;
  for (Line line; in >> line.same && std::getline(in >> std::ws, line.question);) {
    found.lines.push_back(line);
  }
  return found;
}

void set_own_program(const std::string& path) { own_program() = path; }

Score fresh_cases(const fs::path& judged, const Rivals& rivals, const std::string& suite,
                  std::size_t rounds) {
  const ScratchFolder folder;
  const fs::path result = folder / "score";
  const std::uint64_t number = number_setting("STAGE_SEED").value_or(0);
  const auto begin = std::chrono::steady_clock::now();
  run_gate(
      {own_program(), "--gtest_filter=" + suite + ".*", fmt::format("--gtest_repeat={}", rounds)},
      environment_with(
          {"STAGE_REFEREE=" + rivals.first.string(), "STAGE_REFEREE_B=" + rivals.second.string(),
           "STAGE_WORKER=" + judged.string(), "STAGE_SCORE=" + result.string(),
           "STAGE_KEEP=", "STAGE_MISTAKES=", fmt::format("STAGE_SPENT={}", spent_on_workers()),
           fmt::format("STAGE_SEED={}", (number ^ kOtherSeed) >> 1)}));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  count_as_spent(took.count());
  return Score::read(result);
}

}  // namespace stagecraft::stages
