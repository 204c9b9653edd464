#pragma once

#include <functional>
#include <map>
#include <string>

#include "course/worker/exchange.h"

namespace stagecraft::stages {

// Grades speed. Each step of a handout that makes the code faster is a band of points. It begins a
// third of the way from the speed of our code of the step before to that of our code of this step,
// both measured in the same run; 90% of the second is always enough. So the points say the same on
// every machine. The clock is the kernel's CPU time of the process. So the student's code cannot
// turn it back, threads gain nothing, and other programs on the machine do not count.

struct Work {
  Request request;
  Request nothing;  // all other work of the worker, whose time is subtracted
  double operations;
};

// The same kind of work for the student's worker and for our code, with new numbers each time.
struct Race {
  Work mine;
  std::function<std::string(const Response&)> find_problem;  // "" if the answer to `mine` is right
  int first_number;  // of our step that earns no points for speed
  Work first;        // slow code may have fewer operations
  // The later steps of the handout that make the code faster, by their numbers: each is a band. The
  // work is the student's.
  std::map<int, Request> steps;
  std::string unit = "GFLOP/s";  // 10^9 operations per second, and of which kind
};

// Judges the running test: does the worker reach this band (0 is the first)? A later step that is
// slower on this machine counts instead of an earlier one. The first test of a name runs the race
// three times, and up to ten times while the worker is just below the next band; the fastest run of
// each program counts. Wrong code is not measured.
void judge_speed(const std::string& name, const std::function<Race()>& new_race, std::size_t band);

// Skips the running test, with a message, if this processor lacks the instructions that the stage's
// flags need. Returns true if it skipped.
bool skips_for_lack_of_instructions();

}  // namespace stagecraft::stages
