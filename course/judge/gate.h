#pragma once

#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <span>
#include <string>

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
  using Tell = std::function<std::string(const std::string& output, const Tensor& got)>;
  Tell tell = {};
  // The right answers for Request::others, in the same order.
  struct Answer {
    std::map<std::string, Expected> expected;
    Tell tell = {};
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

// The same, with a rule of the gate's own: FindProblem returns what is wrong with an outcome, in
// lines for the student, or an empty string. It is called for every outcome except "not written
// yet".
using FindProblem = std::function<std::string(const Outcome&)>;
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

// The worker that is judged. skips_unwritten: if the worker said that its function is not written
// yet, skips the running test and returns true.
std::filesystem::path worker();
bool skips_unwritten(const Outcome& outcome);

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

// A variable of the environment (STAGE_...); empty if it is not set.
std::string setting(const char* name);

// Drops the numbers of a judged answer that nobody needs any more. Only wrong numbers are kept, to
// find the mistake behind them, and at most kMaxKept bytes per program; a wrong answer beyond this
// limit becomes NoAnswer. kept: the bytes kept so far for this program; updated.
void drop_numbers(Outcome& outcome, bool right, std::size_t& kept);

// Everything that was judged in this process, in order.
const std::vector<Asked>& asked();

// The name of an output in a response: "y", and from the second call on "y#2".
std::string output_name(const std::string& name, std::size_t call);

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
