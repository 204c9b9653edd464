#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "course/judge/diagnosis.h"
#include "course/judge/worker_process.h"
#include "course/worker/exchange.h"

namespace stagecraft::stages {

// One question to the student's code and the right answer, output by output.
struct Case {
  std::string name;
  Request request;
  std::map<std::string, Expected> expected;
  // Intermediate results, in the order of the computation. A response need not contain them. If it
  // does, the first wrong one tells more than the result.
  std::vector<std::pair<std::string, Expected>> on_the_way = {};
  // Describes what is wrong with an output that means more than numbers (tokens, a reason), in
  // lines for the student; returns an empty string if `diagnose` should describe it.
  using Describe = std::function<std::string(const std::string& output, const Tensor& got)>;
  Describe describe = {};
  // The right answers for Request::others, in the same order.
  struct Answer {
    std::map<std::string, Expected> expected;
    Describe describe = {};
  };
  std::vector<Answer> others = {};
  // Inputs that are the bytes of a text. They are shown to a student as text.
  std::set<std::string> texts = {};
  // Names that an error message about this case may contain. Two messages that contain the same of
  // these names count as the same mistake.
  std::vector<std::string> names = {};
};

// The right answer to a call; calls are numbered from 1.
const std::map<std::string, Expected>& expected_of(const Case& question, std::size_t call);

// An output of a call, or an intermediate result.
struct Output {
  std::string name;
  const Expected* expected;
};

// All outputs, in the order in which they are computed.
std::vector<Output> outputs_of(const Case& question);

// Returns what is wrong with an outcome, in lines for the student, or an empty string. It is called
// for every outcome except "not written yet".
using FindProblem = std::function<std::string(const Outcome&)>;

// A question that was asked, and its outcome.
struct Asked {
  std::shared_ptr<const Case> question;
  std::shared_ptr<const FindProblem> find_problem;
  Outcome outcome;
  bool right = false;

  bool would_be_right(const Outcome& other) const { return (*find_problem)(other).empty(); }
};

// True if a call of this function hung.
bool has_hung(std::span<const Asked> asked, const std::string& function);

// Drops the numbers of a judged answer that nobody needs any more. Only wrong numbers are kept, to
// find the mistake behind them, and at most kMaxKept bytes per program; a wrong answer beyond this
// limit becomes NoAnswer. kept: the bytes kept so far for this program; updated.
void drop_numbers(Outcome& outcome, bool right, std::size_t& kept);

}  // namespace stagecraft::stages
