#pragma once

#include <random>
#include <string>
#include <vector>

#include "course/judge/question.h"
#include "course/judge/settings.h"

namespace stagecraft::stages {

// Asks the worker named by STAGE_WORKER and fails the running test with a diagnosis if the answer
// is wrong. Returns whether the test should go on: false if the function is not written yet (the
// test is then skipped) or if a call of it hung before. True after a wrong answer: with more cases,
// the name of the mistake is surer.
bool judge(const Case& question);

// The same for an output of token ids whose order is not fixed: each id must occur share * total
// times. The random numbers of the case are equally spaced, so a difference of 2 is allowed, except
// for share 0.
bool judge_counts(const Case& question, const std::string& output,
                  const std::vector<double>& shares, std::size_t total);

// The same, with a rule of the gate's own.
bool judge_by(const Case& question, const FindProblem& find_problem);

// What is wrong with any outcome in which the code crashed, hung, threw, or wrote outside of its
// outputs; in lines for the student, empty if it did none of these.
std::string broken_rule(const Outcome& outcome);

// What the message of an Error must say, as whole words: at least one of `any_of`, or of the case's
// `names` that contain one of them. It may also contain the names in `may`. It must not contain any
// other of the case's `names`: a message that names everything says nothing.
struct Naming {
  std::vector<std::string> any_of;
  std::vector<std::string> may = {};
};

// The same for a request that the function must refuse with an Error.
bool judge_refused(const Case& question, const Naming& naming);

// If the worker said that its function is not written yet, skips the running test and returns true.
bool skips_unwritten(const Outcome& outcome);

// Everything that was judged in this process, in order.
const std::vector<Asked>& asked();

// The cases of tests/data/operators/NAME.safetensors: PyTorch's answers in f64 with the tolerance
// that follows from the measured spread of summation orders.
std::vector<Case> dumped_cases(const std::string& operator_name);

// Throws Error if a case does not show what it was made for. That is a mistake of the gate, not of
// the student.
void must_show(bool shown, const std::string& what);

// Random numbers for questions that are made at run time. The seed is STAGE_SEED (default: a random
// one); each round of --gtest_repeat has other numbers. A student's code never sees the seed, so it
// cannot know the answers.
class Inputs {
 public:
  Inputs();
  Tensor tensor(std::vector<std::size_t> shape, float scale = 1.0f);  // normally distributed
  std::size_t size(std::size_t min, std::size_t max);
  std::size_t odd_size(std::size_t min, std::size_t max);  // no multiple of a vector or tile
  static void next_round();

 private:
  std::mt19937_64 engine_;
};

}  // namespace stagecraft::stages
