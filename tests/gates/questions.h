#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <iterator>

#include "course/judge/gate.h"
#include "course/judge/messages.h"

namespace stagecraft::stages {

// Helpers for the questions of all gates.

// The name of the first case of a group: the example of the handout, with numbers so few that the
// message shows them all.
inline constexpr const char* kByHand = "the example by hand";

// Judges the dumped cases for which `wanted` is true; stops at the first if the code is not
// written. first: if not empty, the output that is compared before the others.
template <class Wanted>
void judge_dumps(const std::string& function, Wanted wanted, const std::string& first = {}) {
  for (Case& one : dumped_cases(function)) {
    if (!wanted(one)) continue;
    if (!first.empty()) one.on_the_way = {{first, one.expected.at(first)}};
    if (!judge(one)) return;
  }
}
inline void judge_dumps(const std::string& function) {
  judge_dumps(function, [](const Case&) { return true; });
}

inline Tensor filled(std::vector<std::size_t> shape, float value) {
  Tensor tensor;
  std::size_t n = 1;
  for (const std::size_t size : shape) n *= size;
  tensor.shape = std::move(shape);
  tensor.values.assign(n, value);
  return tensor;
}

// Whole numbers (tokens, lengths) as an input, and as the only right answer.
inline Tensor numbers(const std::vector<int>& values) {
  return {{values.size()}, {values.begin(), values.end()}};
}

inline Expected exactly(const std::vector<int>& values) {
  return {{values.size()},
          {values.begin(), values.end()},
          std::vector<double>(values.size(), 0.0),
          true};
}

// Several cases as one, in one process: in_turn asks them one after the other and then the first
// again, at_once at the same time. All call one function with one gap.
inline Case joined(const std::string& name, const std::vector<Case>& cases) {
  Case all = cases.at(0);
  all.name = name;
  for (std::size_t n = 1; n < cases.size(); ++n) {
    all.request.others.push_back(
        {cases[n].request.inputs, cases[n].request.scalars, cases[n].request.texts});
    all.others.push_back({cases[n].expected, cases[n].describe});
  }
  return all;
}

inline Case in_turn(const std::string& name, std::vector<Case> cases) {
  cases.push_back(cases.at(0));
  return joined(name, cases);
}

inline Case at_once(const std::string& name, const std::vector<Case>& cases) {
  Case all = joined(name, cases);
  all.request.at_once = true;
  return all;
}

// Finds data that a function keeps from one call to the next, or shares between threads. It makes
// calls with other numbers, more and fewer of them, then the first again; and two calls at the same
// time. make(size): a case with fresh numbers; 0 is small, 1 larger, 2 the largest.
template <class Make>
bool judge_together(Make make) {
  return judge(in_turn("calls with other arguments", {make(1), make(1), make(2), make(0)})) &&
         judge(at_once("two threads at once", {make(2), make(2)}));
}

// What is wrong if a matrix, which is right, does not have the same bits as one whose rows were
// computed alone.
inline std::string problem_with_rows(const Expected& expected, const Tensor& many,
                                     const Tensor& alone) {
  const bool right = agrees(expected, alone);
  const std::size_t columns = many.cols();
  for (std::size_t i = 0; i < many.values.size(); ++i) {
    if (std::memcmp(&many.values[i], &alone.values[i], sizeof(float)) == 0) continue;
    if (!right && std::fabs(alone.values[i] - expected.values[i]) <= expected.allowed[i]) continue;
    return say(right ? "rows_differ" : "row_alone_wrong", i / columns, i % columns, many.values[i],
               alone.values[i]);
  }
  return {};
}

// Judges a matrix, and then whether each of its rows has the same bits if it is computed alone. The
// worker makes these calls, too, and sends their results as "alone". hint: a line for the student,
// if only bits differ.
inline bool judge_rows_alone(Case one, const std::string& output, const std::string& hint = {}) {
  one.request.inputs["each row alone"] = {{0}, {}};
  const Expected expected = one.expected.at(output);
  one.expected["alone"] = expected;
  const std::string function = one.request.function;
  return judge_by(one, [=](const Outcome& outcome) -> std::string {
    const std::string broken = broken_rule(outcome);
    if (!broken.empty()) return broken;
    const auto& outputs = outcome.response.outputs;
    for (const std::string& name : {output, std::string("alone")}) {
      const auto got = outputs.find(name);
      if (got == outputs.end() || got->second.shape != expected.shape)
        return say("no_answer", name);
    }
    if (!agrees(expected, outputs.at(output))) {
      return diagnose(function, output, expected, outputs.at(output));
    }
    const Tensor& alone = outputs.at("alone");
    const std::string problem = problem_with_rows(expected, outputs.at(output), alone);
    return problem.empty() || !agrees(expected, alone) ? problem : problem + hint;
  });
}

// The name of a StopReason that was sent as a number.
inline std::string reason_name(double reason) {
  constexpr const char* kNames[] = {"EndToken", "MaxTokens", "ContextFull", "Stopped"};
  const bool known = reason >= 0.0 && reason < static_cast<double>(std::size(kNames));
  return known ? kNames[static_cast<std::size_t>(reason)] : fmt::format("{}", reason);
}

}  // namespace stagecraft::stages
