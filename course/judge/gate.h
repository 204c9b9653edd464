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
  // What is computed on the way, in order. It need not be shown; where it is, the first that is
  // wrong tells more than the result.
  std::vector<std::pair<std::string, Expected>> on_the_way = {};
  // What is wrong with an output that stands for more than numbers (tokens, a reason), in lines for
  // the student; empty where `diagnose` may say it.
  using Tell = std::function<std::string(const std::string& output, const Tensor& got)>;
  Tell tell = {};
  // The right answers to the request's other arguments, one after the other.
  struct Answer {
    std::map<std::string, Expected> expected;
    Tell tell = {};
  };
  std::vector<Answer> others = {};
  // Inputs that are the bytes of a text: a student sees the text.
  std::set<std::string> texts = {};
  // What an error about it may name: two errors that name the same of these are the same mistake.
  std::vector<std::string> names = {};
};

// The right answer to a call, counted from 1.
const std::map<std::string, Expected>& expected_of(const Case& question, std::size_t call);

// Asks the worker named by STAGE_WORKER and fails the running test with a diagnosis if the answer
// is not right. Returns whether the test goes on. It ends if the code is not written yet (then it
// is skipped) or hangs. It goes on after a wrong answer: more cases make the mistake's name surer.
bool judge(const Case& question);

// The same for an output of token ids of which only the counts are fixed: each id must come as
// often as its share of `total`, but for two steps of the sweep.
bool judge_counts(const Case& question, const std::string& output,
                  const std::vector<double>& shares, std::size_t total);

// The same by a rule of the gate's own: what is wrong with an outcome, in lines for the student;
// empty if nothing is. The rule sees every outcome but "not written yet".
using FindProblem = std::function<std::string(const Outcome&)>;
bool judge_by(const Case& question, const FindProblem& find_problem);

// What no answer may do: crash, hang, throw, write elsewhere. In lines for the student; empty if it
// did none of these.
std::string broken_rule(const Outcome& outcome);

// What the message of an Error has to say: at least one of `any_of`, names or parts of names. It
// may also say those of `may`. It must not say any other of the question's `names`, as whole words:
// a message that names everything says nothing.
struct Naming {
  std::vector<std::string> any_of;
  std::vector<std::string> may = {};
};

// The same for what must be refused with an Error.
bool judge_refused(const Case& question, const Naming& naming);

// The worker that is judged, and whether it said that its function is not written yet, which skips
// the running test.
std::filesystem::path worker();
bool skips_unwritten(const Outcome& outcome);

// A question that was asked, and what became of it.
struct Asked {
  std::shared_ptr<const Case> question;
  std::shared_ptr<const FindProblem> find_problem;
  Outcome outcome;
  bool right = false;

  bool would_be_right(const Outcome& other) const { return (*find_problem)(other).empty(); }
};

// Whether a call of this function did not end.
bool has_hung(std::span<const Asked> asked, const std::string& function);

// A variable of the environment (STAGE_...); empty if it is not set.
std::string setting(const char* name);

// Of an answer that has been judged only wrong numbers are needed, to find the mistake behind them,
// and of those no more is kept than honest code makes: past that an answer counts as none. kept:
// the bytes of those before, for one program.
void drop_numbers(Outcome& outcome, bool right, std::size_t& kept);

// Everything that was judged in this process, in order.
const std::vector<Asked>& asked();

// Under which name a response holds an output: "y", and from the second call on "y#2".
std::string output_name(const std::string& name, std::size_t call);

// The cases of tests/data/operators/NAME.safetensors: PyTorch's answers in f64 with the tolerance
// that follows from the measured spread of summation orders.
std::vector<Case> dumped_cases(const std::string& operator_name);

// A case that does not show what it is there to show is a mistake of the gate: throws Error.
void must_show(bool shown, const std::string& what);

// Numbers for questions made on the spot, from STAGE_SEED (by default another one each run), others
// in each round of --gtest_repeat: a student's code never sees the seed, so it cannot know the
// answer.
class Inputs {
 public:
  Inputs();
  Tensor tensor(std::vector<std::size_t> shape, float scale = 1.0f);  // normally distributed
  std::size_t size(std::size_t min, std::size_t max);
  std::size_t odd_size(std::size_t min, std::size_t max);  // no multiple of any vector or tile
  static void next_round();

 private:
  std::mt19937_64 engine_;
};

}  // namespace stagecraft::stages
