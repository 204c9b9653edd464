#include "course/judge/kept_requests.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/ascii.h"
#include "course/judge/case_names.h"
#include "course/judge/scratch_folder.h"
#include "course/judge/settings.h"

namespace stagecraft::stages {
namespace {

namespace fs = std::filesystem;

fs::path folder() { return setting("STAGE_KEEP"); }

const ::testing::TestInfo& running_test() {
  return *::testing::UnitTest::GetInstance()->current_test_info();
}

bool is_plain(char c) { return is_ascii_letter(c) || is_ascii_digit(c) || c == '.' || c == '-'; }

// "A·Bᵀ, n = 3" -> "A_B_n_3"
std::string plain(const std::string& text) {
  std::string name;
  for (const char c : text) {
    if (is_plain(c)) {
      name += c;
    } else if (!name.ends_with('_')) {
      name += '_';
    }
  }
  return name;
}

const char* kind_of(const Outcome& outcome, bool is_about_an_error) {
  switch (outcome.kind) {
    case Outcome::Kind::Crashed:
      return outcome.printed_too_much ? "printed" : "crashed";
    case Outcome::Kind::Hung:
      return "hung";
    case Outcome::Kind::Exited:
      return "exited";
    case Outcome::Kind::NoAnswer:
      return "no_answer";
    case Outcome::Kind::Answered:
      break;
  }
  const bool inside = outcome.response.overrun.empty() && outcome.response.changed_input.empty();
  if (!inside) return "overrun";
  if (outcome.response.status == Response::Status::Threw) return "threw";
  return is_about_an_error ? "refusal" : "wrong";
}

}  // namespace

std::string keep_request(const Case& question, std::size_t number) {
  if (folder().empty()) return {};
  const std::string name = fmt::format("{:03}-{}.{}-{}", number, running_test().test_suite_name(),
                                       running_test().name(), plain(question.name));
  question.request.write(folder() / name);
  std::ofstream(folder() / "names", std::ios::app) << name_in_words(question.name) << '\n';
  return name;
}

void keep_failure(const std::string& name, const Outcome& outcome, bool is_about_an_error) {
  if (name.empty()) return;
  std::ofstream(folder() / "failed", std::ios::app)
      << kind_of(outcome, is_about_an_error) << ' ' << running_test().test_suite_name() << ' '
      << name << '\n';
}

fs::path folder_for_files(const std::string& name) {
  fs::path parent = folder() / "files";
  if (folder().empty()) {
    static const ScratchFolder temporary;
    parent = temporary.path();
  }
  fs::create_directories(parent / name);
  return parent / name;
}

}  // namespace stagecraft::stages
