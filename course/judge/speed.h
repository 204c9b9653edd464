#pragma once

#include <functional>
#include <string>

#include "course/judge/gate.h"

namespace stagecraft::stages {

// Speed as a mark. What counts is a ratio of this run: to the textbook's loop, or where that is
// less, to what a core of this machine can do. The clock is the kernel's account of a process, so
// that no code in it can turn it back, threads win nothing, and other programs on the machine take
// no part of it.

// The same amount of work for the student's worker and for the yardsticks, on numbers that are made
// anew each time.
struct Race {
  Request mine;                    // for the worker; right where find_problem says nothing
  Request textbook;                // for the yardsticks: the loop, and below it ...
  Request nothing;                 // ... all that the worker does besides
  double operations = 0;           // of `mine`
  double textbook_operations = 0;  // it need not do as many
  std::function<std::string(const Response&)> find_problem;
  std::string unit = "GFLOP/s";  // a thousand million operations a second, of which kind
};

// A band begins at so many times the textbook's speed, or at this share of the ceiling.
struct Band {
  double times;
  double share;
};

// Judges the running test: does the worker reach this band? Each race is run until it does, three
// times at most, and an edge is a tenth wide, so that what else the machine does costs no point.
// Code that is wrong is not measured.
void judge_speed(const std::string& name, const std::function<Race()>& new_race, const Band& band);

// Skips the running test, and says why, where the flags that a stage is built with need a processor
// that this is not. Returns whether it did.
bool skips_for_lack_of_instructions();

}  // namespace stagecraft::stages
