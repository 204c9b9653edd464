// The gate: GoogleTest over the cases of the stages. If STAGE_MISTAKES names the built programs of
// a stage's catalogue, the report names, for each suite that failed, the mistake that explains it,
// if there is one.
#include <gtest/gtest.h>

#include <sys/resource.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "course/judge/case_names.h"
#include "course/judge/gate.h"
#include "course/judge/many_programs.h"
#include "course/judge/messages.h"
#include "course/judge/mistakes.h"
#include "course/judge/referee.h"
#include "course/sandbox/confinement.h"
#include "course/worker/kept_memory.h"

namespace stagecraft::stages {
namespace {

// Runs after all suites, because what a later suite passed is evidence, too. If any call hung, no
// mistake is named: the message that it hung is enough, and asking wrong programs that also hang
// takes long.
class NamedMistakes : public ::testing::EmptyTestEventListener {
 public:
  explicit NamedMistakes(std::filesystem::path folder) : folder_(std::move(folder)) {}

  void OnTestSuiteStart(const ::testing::TestSuite&) override { first_ = asked().size(); }

  void OnTestSuiteEnd(const ::testing::TestSuite& suite) override {
    if (suite.Failed()) failed_.push_back({suite.name(), first_, asked().size()});
  }

  void OnTestIterationEnd(const ::testing::UnitTest&, int) override {
    const bool hung = std::ranges::any_of(
        asked(), [](const Asked& one) { return one.outcome.kind == Outcome::Kind::Hung; });
    nlohmann::json found = nlohmann::json::object();
    for (const Suite& suite : hung ? std::vector<Suite>() : failed_) {
      const auto mistake = find_mistake(folder_, {worker(), asked()}, suite);
      if (!mistake) continue;
      const std::string text = mistake_sentence(folder_, *mistake);
      found[suite.name] = {{"name", mistake->name},
                           {"says", text},
                           {"shown", name_in_words(mistake->shown)},
                           {"in_part", mistake->reproduced < mistake->failed}};
      fmt::print("{}: {}\n", suite.name, text);
    }
    ::testing::Test::RecordProperty("known-mistakes", found.dump(-1, ' ', true));  // for course/
  }

 private:
  std::filesystem::path folder_;
  std::size_t first_ = 0;
  std::vector<Suite> failed_;
};

class RefusedPrograms : public ::testing::EmptyTestEventListener {
  void OnTestIterationEnd(const ::testing::UnitTest&, int) override {
    if (!has_many_programs()) return;
    ::testing::Test::RecordProperty("refused", refused_programs().dump(-1, ' ', true));
  }
};

class Rounds : public ::testing::EmptyTestEventListener {
 public:
  void OnTestIterationStart(const ::testing::UnitTest&, int round) override {
    if (round > 0) Inputs::next_round();
  }
};

// The peak memory of the judge, in kilobytes. A test of the judge checks it.
class Peak : public ::testing::EmptyTestEventListener {
  void OnTestSuiteEnd(const ::testing::TestSuite&) override {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    ::testing::Test::RecordProperty("peak", static_cast<int>(used.ru_maxrss));
  }
};

}  // namespace
}  // namespace stagecraft::stages

int main(int argc, char** argv) {
  stagecraft::stages::keep_freed_memory();
  ::testing::InitGoogleTest(&argc, argv);
  stagecraft::stages::guard_own_memory();
  auto& listeners = ::testing::UnitTest::GetInstance()->listeners();  // it owns what is appended
  if (const std::string folder = stagecraft::stages::setting("STAGE_MISTAKES"); !folder.empty()) {
    listeners.Append(new stagecraft::stages::NamedMistakes(folder));
  }
  listeners.Append(new stagecraft::stages::Peak);
  listeners.Append(new stagecraft::stages::Rounds);
  listeners.Append(new stagecraft::stages::RefusedPrograms);
  stagecraft::stages::set_own_program(argv[0]);
  const int result = RUN_ALL_TESTS();
  if (stagecraft::stages::is_referee()) stagecraft::stages::score().write();
  return result;
}
