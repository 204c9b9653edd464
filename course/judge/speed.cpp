#include "course/judge/speed.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "course/judge/gate.h"
#include "course/judge/messages.h"
#include "course/judge/paths.h"

namespace stagecraft::stages {
namespace {

constexpr double kEnough = 0.75;  // this part of our speed reaches a band
constexpr double kGiga = 1e-9;

// The fastest results of all races of this process so far: other load only makes them slower.
struct Record {
  std::string problem;
  std::string unit;
  std::size_t tries = 0;
  double mine = 0.0;           // operations per second
  std::map<int, double> ours;  // the same, by the number of the step

  // The step that decides a band: its own, or a later one that is slower on this machine.
  std::pair<int, double> decisive(std::size_t band) const {
    const auto own = std::next(ours.begin(), static_cast<std::ptrdiff_t>(band) + 1);
    return *std::ranges::min_element(own, ours.end(), {},
                                     [](const auto& step) { return step.second; });
  }
  double edge(std::size_t band) const { return kEnough * decisive(band).second; }
  bool reaches(std::size_t band) const { return mine >= edge(band); }
};

constexpr std::size_t kFewestTries = 3;
// Five, unless STAGE_TRIES is set.
std::size_t most_tries() {
  const std::string text = setting("STAGE_TRIES");
  return text.empty() ? 5 : std::stoul(text);
}

Record& record_of(const std::string& name) {
  static std::map<std::string, Record> records;
  return records[name];
}

double yardstick(const Request& request) {
  const Outcome outcome = run_worker(yardsticks(), request);
  const std::string problem = broken_rule(outcome);
  if (!problem.empty()) throw Error("{}: {}", request.function, problem);
  return outcome.seconds;
}

// seconds: of the request
double speed(const Work& work, double seconds) {
  return work.operations / std::max(seconds - yardstick(work.nothing), 1e-4);
}

// False if the function is not written yet.
bool run_race(const Race& race, Record& record) {
  record.unit = race.unit;
  const Outcome outcome = run_worker(worker(), race.mine.request);
  if (skips_unwritten(outcome)) return false;
  record.problem = broken_rule(outcome);
  if (record.problem.empty()) record.problem = race.find_problem(outcome.response);
  if (!record.problem.empty()) return true;
  record.mine = std::max(record.mine, speed(race.mine, outcome.seconds));
  for (const OurStep& step : race.ours) {
    double& fastest = record.ours[step.number];
    fastest = std::max(fastest, speed(step.work, yardstick(step.work.request)));
  }
  ++record.tries;
  return true;
}

// "step 0 1.6, step 1 9.4"
std::string steps_in_words(const Record& record) {
  std::string words;
  for (const auto& [number, speed] : record.ours) {
    if (!words.empty()) words += say("speed_and");
    words += say("speed_of_step", number, speed * kGiga);
  }
  return words;
}

// Skips the test. Without a property, it would count as passed.
void skip(const std::string& property, const std::string& why) {
  ::testing::Test::RecordProperty(property, why);
  [&] { GTEST_SKIP() << why; }();
}

bool is_wrong_elsewhere() {
  return std::ranges::any_of(asked(), [](const Asked& one) { return !one.right; });
}

}  // namespace

bool skips_for_lack_of_instructions() {
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
    skip("not-judged", say("no_avx2"));
    return true;
  }
#endif
  return false;
}

void judge_speed(const std::string& name, const std::function<Race()>& new_race, std::size_t band) {
  if (skips_for_lack_of_instructions()) return;
  if (yardsticks().empty()) return skip("not-measured", say("speed_needs_release"));
  if (is_wrong_elsewhere()) return skip("not-measured", say("speed_not_measured"));
  Record& record = record_of(name);
  while (record.problem.empty() && record.tries < most_tries() &&
         (record.tries < kFewestTries || !record.reaches(band))) {
    if (record.tries > 0) Inputs::next_round();  // nothing can be remembered
    if (!run_race(new_race(), record)) return;
  }
  if (!record.problem.empty()) {
    ADD_FAILURE() << name << "\n  " << say("speed_wrong") << "\n  " << record.problem;
    return;
  }
  const std::string measured =
      say("speed_measured", name, record.mine * kGiga, record.unit, steps_in_words(record));
  ::testing::Test::RecordProperty("measured", measured);
  if (record.reaches(band)) return;
  ::testing::Test::RecordProperty("too-slow", "yes");
  ADD_FAILURE() << measured << "\n  "
                << say("speed_short", record.edge(band) * kGiga, record.unit,
                       record.decisive(band).first);
}

}  // namespace stagecraft::stages
