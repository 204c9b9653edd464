#include "course/judge/speed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "course/judge/gate.h"
#include "course/judge/messages.h"
#include "course/judge/paths.h"

namespace stagecraft::stages {
namespace {

constexpr double kGiga = 1e-9;
// A step begins at this part of the way from our speed of the step before.
constexpr double kPartOfTheWay = 1.0 / 3.0;
// This part of our speed is always enough, also if two steps are equally fast.
constexpr double kAlwaysEnough = 0.9;
// If this part of the speed that a band needs is reached, other programs on the machine may be why
// the rest is missing.
constexpr double kNear = 0.75;

// The shortest times of a program in all races of this process so far: other load only makes them
// longer.
struct Times {
  double operations = 0.0;
  double seconds = std::numeric_limits<double>::infinity();
  double besides = std::numeric_limits<double>::infinity();  // of Work::nothing

  void add(double n_operations, double of_work, double of_nothing) {
    operations = n_operations;
    seconds = std::min(seconds, of_work);
    besides = std::min(besides, of_nothing);
  }
  double speed() const { return operations / std::max(seconds - besides, 1e-4); }  // per second
};

struct Record {
  std::string problem;
  std::string unit;
  std::size_t tries = 0;
  Times mine;
  std::map<int, Times> ours;  // by the number of the step

  // Our speed at this place among the steps, or that of a later step that is slower here.
  double ours_at(std::size_t place) const {
    double least = std::numeric_limits<double>::infinity();
    for (auto step = std::next(ours.begin(), static_cast<std::ptrdiff_t>(place));
         step != ours.end(); ++step) {
      least = std::min(least, step->second.speed());
    }
    return least;
  }
  int step_of(std::size_t band) const {
    return std::next(ours.begin(), static_cast<std::ptrdiff_t>(band) + 1)->first;
  }
  double edge(std::size_t band) const {
    const double before = ours_at(band), own = ours_at(band + 1);
    return std::min(before + kPartOfTheWay * (own - before), kAlwaysEnough * own);
  }
  bool reaches(std::size_t band) const { return mine.speed() >= edge(band); }
  // Is the next band so near that another try may reach it?
  bool may_reach_more() const {
    for (std::size_t band = 0; band + 1 < ours.size(); ++band) {
      if (!reaches(band)) return mine.speed() >= kNear * edge(band);
    }
    return false;
  }
};

constexpr std::size_t kFewestTries = 3;
std::size_t most_tries() { return number_setting("STAGE_TRIES").value_or(10); }

Record& record_of(const std::string& name) {
  static std::map<std::string, Record> records;
  return records[name];
}

double yardstick(const Request& request) {
  const Outcome outcome = run_in_race(yardsticks(), request);
  const std::string problem = broken_rule(outcome);
  if (!problem.empty()) throw Error("{}: {}", request.function, problem);
  return outcome.seconds;
}

// False if the function is not written yet.
bool run_race(const Race& race, Record& record) {
  record.unit = race.unit;
  const Outcome outcome = run_in_race(worker(), race.mine.request);
  if (skips_unwritten(outcome)) return false;
  record.problem = broken_rule(outcome);
  if (record.problem.empty()) record.problem = race.find_problem(outcome.response);
  if (!record.problem.empty()) return true;
  const double operations = race.mine.operations, besides = yardstick(race.mine.nothing);
  record.mine.add(operations, outcome.seconds, besides);
  record.ours[race.first_number].add(race.first.operations, yardstick(race.first.request),
                                     yardstick(race.first.nothing));
  for (const auto& [number, request] : race.steps) {
    record.ours[number].add(operations, yardstick(request), besides);
  }
  ++record.tries;
  return true;
}

// "step 0 1.6, step 1 9.4"
std::string steps_in_words(const Record& record) {
  std::string words;
  for (const auto& [number, times] : record.ours) {
    if (!words.empty()) words += say("speed_and");
    words += say("speed_of_step", number, times.speed() * kGiga);
  }
  return words;
}

// Printed with one digit, 10.59 and a step that begins at 10.61 would look equal. So the speed that
// was measured is rounded down, and where a step begins is rounded up.
double rounded_down(double speed) { return std::floor(speed * 10.0) / 10.0; }
double rounded_up(double speed) { return std::ceil(speed * 10.0) / 10.0; }

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
         (record.tries < kFewestTries || record.may_reach_more())) {
    if (record.tries > 0) Inputs::next_round();  // nothing can be remembered
    if (!run_race(new_race(), record)) return;
  }
  if (!record.problem.empty()) {
    ADD_FAILURE() << name << "\n  " << say("speed_wrong") << "\n  " << record.problem;
    return;
  }
  const std::string measured =
      say("speed_measured", name, rounded_down(record.mine.speed() * kGiga), record.unit,
          steps_in_words(record));
  ::testing::Test::RecordProperty("measured", measured);
  if (record.reaches(band)) return;
  ::testing::Test::RecordProperty("too-slow", "yes");
  ADD_FAILURE() << measured << "\n  "
                << say("speed_short", record.step_of(band), rounded_up(record.edge(band) * kGiga),
                       record.unit);
}

}  // namespace stagecraft::stages
