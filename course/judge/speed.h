#pragma once

#include <functional>
#include <string>

#include "course/worker/exchange.h"

namespace stagecraft::stages {

// Grades speed. The speed counts relative to another one of the same run: to that of the textbook's
// loop, or, if that asks for less, to the peak of a core of this machine. The clock is the kernel's
// CPU time of the process. So the student's code cannot turn it back, threads gain nothing, and
// other programs on the machine do not count.

// The same kind of work for the student's worker and for the yardsticks, with new numbers each
// time.
struct Race {
  Request mine;                    // for the worker; its answer is right if find_problem returns ""
  Request textbook;                // for the yardsticks: the textbook's loop
  Request nothing;                 // all other work of a worker, to subtract
  double operations = 0;           // of `mine`
  double textbook_operations = 0;  // may be fewer than `operations`
  std::function<std::string(const Response&)> find_problem;
  std::string unit = "GFLOP/s";  // 10^9 operations per second, and of which kind
};

// A band begins at `times` times the textbook's speed or at `share` of the peak, whichever is less.
struct Band {
  double times;
  double share;
};

// Judges the running test: does the worker reach this band? A race is run up to three times, until
// the worker reaches it. 90% of the band's edge is enough, so that other load on the machine costs
// no point. Wrong code is not measured.
void judge_speed(const std::string& name, const std::function<Race()>& new_race, const Band& band);

// Skips the running test, with a message, if this processor lacks the instructions that the stage's
// flags need. Returns true if it skipped.
bool skips_for_lack_of_instructions();

}  // namespace stagecraft::stages
