#include "course/judge/many_programs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "course/judge/alike.h"
#include "course/judge/known_answers.h"
#include "course/judge/mistakes.h"
#include "course/judge/settings.h"

namespace stagecraft::stages {
namespace {

namespace fs = std::filesystem;

std::string current_suite() {
  return ::testing::UnitTest::GetInstance()->current_test_suite()->name();
}

struct Program {
  std::string problem;       // of its first failure
  std::string suite;         // the suite of this failure
  std::vector<Asked> asked;  // all questions, if its mistake is to be named
  std::vector<Suite> suites;
  std::map<const Case*, std::size_t> places;  // index in `asked`
  std::size_t kept_bytes = 0;

  void keep(Asked one) {
    if (suites.empty() || suites.back().name != current_suite()) {
      suites.push_back({current_suite(), asked.size(), asked.size()});
    }
    drop_numbers(one.outcome, one.right, kept_bytes);
    places[one.question.get()] = asked.size();
    asked.push_back(std::move(one));
    suites.back().last = asked.size();
  }

  const Asked* find(const Asked& other) const {  // the answer to the same question
    const auto place = places.find(other.question.get());
    return place != places.end() ? &asked[place->second] : nullptr;
  }
  bool hangs_in(const Asked& other) const {
    return has_hung(asked, other.question->request.function);
  }
};

using Programs = std::map<std::string, Program>;

Programs& programs() {
  static Programs all = [] {
    Programs named;
    std::istringstream names(setting("STAGE_PROGRAMS"));
    for (std::string name; std::getline(names, name, ':');) named[name];
    return named;
  }();
  return all;
}

// Uses the answers that the known mistakes have already given as judged programs.
class AskedMistakes : public KnownMistakes {
 public:
  bool is_ruled_out(const fs::path& mistake, std::span<const Asked> asked) const override {
    const Program* program = find(mistake);
    return program != nullptr && std::ranges::any_of(asked, [&](const Asked& one) {
             const Asked* known = program->find(one);
             return one.right && known != nullptr && !known->right;
           });
  }
  bool is_right(const fs::path& mistake, const Asked& one) const override {
    const Program* program = find(mistake);
    if (program == nullptr) return KnownMistakes::is_right(mistake, one);
    if (const Asked* known = program->find(one); known != nullptr) return known->right;
    return !program->hangs_in(one) && KnownMistakes::is_right(mistake, one);
  }
  bool reproduces(const fs::path& mistake, const Asked& failed) const override {
    const Program* program = find(mistake);
    if (program == nullptr) return KnownMistakes::reproduces(mistake, failed);
    if (const Asked* known = program->find(failed); known != nullptr) {
      return !known->right && alike(*failed.question, failed.outcome, known->outcome);
    }
    return !program->hangs_in(failed) && KnownMistakes::reproduces(mistake, failed);
  }

 private:
  static const Program* find(const fs::path& mistake) {
    const auto program = programs().find(mistake.filename().string());
    return program != programs().end() ? &program->second : nullptr;
  }
};

nlohmann::json mistakes_of(const std::string& name, const Program& program) {
  nlohmann::json found = nlohmann::json::object();
  const fs::path folder = setting("STAGE_MISTAKES");
  const Judged judged{folder / name, program.asked};
  for (const Suite& suite : program.suites) {
    const auto mistake = find_mistake(folder, judged, suite, AskedMistakes());
    if (mistake) found[suite.name] = mistake->name;
  }
  return found;
}

}  // namespace

bool has_many_programs() {
  static const bool is = !setting("STAGE_PROGRAMS").empty();
  return is;
}

void ask_many_programs(const Case& question, const FindProblem& find_problem) {
  static const fs::path folder = setting("STAGE_OURS");
  static const bool is_to_name = !setting("STAGE_MISTAKES").empty();
  const WrittenRequest request(question.request);
  const auto shared_question = std::make_shared<const Case>(question);
  const auto shared_rule = std::make_shared<const FindProblem>(find_problem);
  for (auto& [name, program] : programs()) {
    // Simultaneous calls take as long as all other cases together, and tell little about a program
    // that fails without them.
    const bool is_done = is_to_name && !question.request.at_once
                             ? has_hung(program.asked, question.request.function)
                             : !program.problem.empty();
    if (is_done) continue;
    Outcome outcome = ask_ours(folder / name, request);
    if (outcome.kind == Outcome::Kind::Answered &&
        outcome.response.status == Response::Status::NotWritten) {
      continue;
    }
    const std::string problem = find_problem(outcome);
    if (!problem.empty() && program.problem.empty()) {
      program.problem = question.name + ": " + problem;
      program.suite = current_suite();
    }
    if (is_to_name)
      program.keep({shared_question, shared_rule, std::move(outcome), problem.empty()});
  }
}

nlohmann::json refused_programs() {
  nlohmann::json refused = nlohmann::json::object();
  for (const auto& [name, program] : programs()) {
    if (program.problem.empty()) continue;
    refused[name] = {{"first", program.problem},
                     {"suite", program.suite},
                     {"mistakes", mistakes_of(name, program)}};
  }
  return refused;
}

}  // namespace stagecraft::stages
