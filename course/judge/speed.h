#pragma once

#include <functional>
#include <string>
#include <vector>

#include "course/worker/exchange.h"

namespace stagecraft::stages {

// Grades speed. Each step of a handout that makes the code faster is a band of points. The
// student's code reaches it if its speed is a third of the way from our code of the step before to
// our code of this step, measured in the same run; 90% of our speed are always enough. So the
// points say the same on every machine. The clock is the kernel's CPU time of the process. So the
// student's code cannot turn it back, threads gain nothing, and other programs on the machine do
// not count.

struct Work {
  Request request;
  Request nothing;  // all other work of the worker, whose time is subtracted
  double operations;
};

// Our code of one step of the handout.
struct OurStep {
  int number;  // in the handout
  Work work;   // slow code may have fewer operations
};

// The same kind of work for the student's worker and for our steps, with new numbers each time.
struct Race {
  Work mine;
  std::function<std::string(const Response&)> find_problem;  // "" if the answer to `mine` is right
  // In the handout's order. The first is the code that earns no points for speed; each of the
  // others is a band.
  std::vector<OurStep> ours;
  std::string unit = "GFLOP/s";  // 10^9 operations per second, and of which kind
};

// Judges the running test: does the worker reach this band (0 is the first)? A later step that is
// slower on this machine counts instead of an earlier one. The first test of a name runs the race
// three or four times, until the worker reaches all bands; the fastest run of each program counts.
// Wrong code is not measured.
void judge_speed(const std::string& name, const std::function<Race()>& new_race, std::size_t band);

// Skips the running test, with a message, if this processor lacks the instructions that the stage's
// flags need. Returns true if it skipped.
bool skips_for_lack_of_instructions();

}  // namespace stagecraft::stages
