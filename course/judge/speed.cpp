#include "course/judge/speed.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "course/judge/gate.h"
#include "course/judge/messages.h"
#include "course/judge/paths.h"

namespace stagecraft::stages {
namespace {

constexpr double kTolerance = 0.9;  // this part of a band's edge is enough
constexpr double kFmaSteps = 15e6;  // about 20 ms
constexpr double kFmaOperations = 192;
constexpr double kGiga = 1e-9;

struct Speeds {  // operations per second
  double mine = 0.0;
  double textbook = 0.0;
  double ceiling = 0.0;

  double edge(const Band& band) const {
    return std::min(band.times * textbook, band.share * ceiling);
  }
  // Speed relative to the edge of a band.
  double reached(const Band& band) const { return mine / edge(band); }
};

// The results of all races of this process so far.
struct Record {
  std::string problem;
  std::string unit;
  std::vector<Speeds> tries;
};

// Three, unless STAGE_TRIES is set.
std::size_t most_tries() {
  const std::string text = setting("STAGE_TRIES");
  return text.empty() ? 3 : std::stoul(text);
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

double ceiling() {
  Request request{"fma", {}, {{"steps", 0.0}}};
  const double start = yardstick(request);
  request.scalars["steps"] = kFmaSteps;
  return kFmaSteps * kFmaOperations / std::max(yardstick(request) - start, 1e-6);
}

// False if the function is not written yet.
bool run_race(const Race& race, Record& record) {
  record.unit = race.unit;
  const Outcome outcome = run_worker(worker(), race.mine);
  if (skips_unwritten(outcome)) return false;
  record.problem = broken_rule(outcome);
  if (record.problem.empty()) record.problem = race.find_problem(outcome.response);
  if (!record.problem.empty()) return true;
  const double besides = yardstick(race.nothing);
  const auto speed = [&](double operations, double seconds) {
    return operations / std::max(seconds - besides, 1e-4);
  };
  record.tries.push_back({speed(race.operations, outcome.seconds),
                          speed(race.textbook_operations, yardstick(race.textbook)), ceiling()});
  return true;
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

void judge_speed(const std::string& name, const std::function<Race()>& new_race, const Band& band) {
  if (skips_for_lack_of_instructions()) return;
  if (yardsticks().empty()) return skip("not-measured", say("speed_needs_release"));
  if (is_wrong_elsewhere()) return skip("not-measured", say("speed_not_measured"));
  Record& record = record_of(name);
  const auto best = [&] {
    return std::ranges::max_element(record.tries, {},
                                    [&](const Speeds& speeds) { return speeds.reached(band); });
  };
  while (record.problem.empty() && record.tries.size() < most_tries() &&
         (record.tries.empty() || best()->reached(band) < kTolerance)) {
    if (!record.tries.empty()) Inputs::next_round();  // nothing can be remembered
    if (!run_race(new_race(), record)) return;
  }
  if (!record.problem.empty()) {
    ADD_FAILURE() << name << "\n  " << say("speed_wrong") << "\n  " << record.problem;
    return;
  }
  const Speeds& speeds = *best();
  const std::string measured =
      say("speed_measured", name, speeds.mine * kGiga, speeds.mine / speeds.textbook,
          100.0 * speeds.mine / speeds.ceiling, record.unit);
  ::testing::Test::RecordProperty("measured", measured);
  if (speeds.reached(band) >= kTolerance) return;
  ::testing::Test::RecordProperty("too-slow", "yes");
  ADD_FAILURE() << measured << "\n  "
                << say("speed_short", speeds.edge(band) * kGiga, band.times, 100.0 * band.share,
                       record.unit, kTolerance * speeds.edge(band) * kGiga);
}

}  // namespace stagecraft::stages
