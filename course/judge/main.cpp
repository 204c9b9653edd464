// The gate: GoogleTest over the cases of the stages. Where STAGE_MISTAKES names the built programs
// of a stage's catalogue, each suite that fails ends with the mistake that explains it, if one
// does.
#include <gtest/gtest.h>

#include <sys/resource.h>

#include <cstdlib>

#include "course/judge/messages.h"
#include "course/judge/mistakes.h"
#include "course/sandbox/confinement.h"

namespace stagecraft::stages {
namespace {

class KnownMistakes : public ::testing::EmptyTestEventListener {
 public:
  explicit KnownMistakes(std::filesystem::path folder) : folder_(std::move(folder)) {}

  void OnTestSuiteStart(const ::testing::TestSuite&) override { first_ = asked().size(); }

  void OnTestSuiteEnd(const ::testing::TestSuite& suite) override {
    if (!suite.Failed()) return;
    const std::string name = find_mistake(folder_, asked(), first_, last_);
    if (name.empty()) return;
    last_ = name;
    const std::string text = say("known_mistake", mistake_sentence(folder_, name));
    // Python reads these from the report.
    ::testing::Test::RecordProperty("known-mistake", name);
    ::testing::Test::RecordProperty("known-mistake-says", text);
    fmt::print("{}\n", text);
  }

 private:
  std::filesystem::path folder_;
  std::size_t first_ = 0;
  std::string last_;  // the mistake found before
};

// The most memory that the judge had so far, in kilobytes: a test of its own looks at that.
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
  ::testing::InitGoogleTest(&argc, argv);
  stagecraft::stages::guard_own_memory();
  if (const char* folder = std::getenv("STAGE_MISTAKES"); folder != nullptr && *folder != '\0') {
    auto listener = std::make_unique<stagecraft::stages::KnownMistakes>(folder);
    ::testing::UnitTest::GetInstance()->listeners().Append(listener.release());  // GoogleTest's now
  }
  ::testing::UnitTest::GetInstance()->listeners().Append(new stagecraft::stages::Peak);
  const std::string why = stagecraft::stages::not_confined_because();
  if (!why.empty()) ::testing::Test::RecordProperty("not-confined", why);  // for the report
  return RUN_ALL_TESTS();
}
