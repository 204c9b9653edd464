#include "course/judge/mistakes.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/mapped_file.h"
#include "course/judge/alike.h"
#include "course/judge/known_answers.h"
#include "course/judge/messages.h"
#include "course/judge/paths.h"
#include "course/judge/referee.h"

namespace stagecraft::stages {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kNoAccident = 8;  // this many wrong elements do not agree by accident
constexpr std::size_t kRoundsOfRivals = 12;
constexpr std::size_t kRoundsToConfirm = 3;

// The wrong programs that have a sentence, in the order of mistakes.json.
nlohmann::json sentences(const fs::path& folder) {
  const nlohmann::json registry =
      repository_json(fs::path("course/mistakes") / folder.filename() / "mistakes.json");
  nlohmann::json found = nlohmann::json::array();
  for (const nlohmann::json& program : registry.at("programs")) {
    if (program.contains("en")) found.push_back(program);
  }
  return found;
}

std::string name_of(const nlohmann::json& program) {
  return fs::path(program.at("file").get<std::string>()).stem().string();
}

bool is_unwritten(const Tensor& tensor) {
  return !tensor.values.empty() && std::ranges::all_of(tensor.values, is_untouched);
}

constexpr std::size_t kConvincing = 2;  // the evidence that is needed to name a mistake

// How strong the evidence is if another program fails this case in the same way: 0, 1 or
// kConvincing.
std::size_t evidence(const Asked& asked) {
  if (asked.outcome.stopped_by_a_trap()) return 1;
  if (asked.outcome.kind != Outcome::Kind::Answered) return 0;
  const Response& response = asked.outcome.response;
  const Case& question = *asked.question;
  if (response.status != Response::Status::Done || question.expected.empty()) return 1;
  std::size_t wrong = 0;
  bool whole = !response.overrun.empty() || !response.changed_input.empty();
  bool is_whole_one_wrong = false;
  bool is_nothing_written = false;  // many programs end before they write anything
  bool all_agree = true;            // if so, the case itself compares two outputs
  for (const Output& output : outputs_of(question)) {
    const auto got = response.outputs.find(output.name);
    if (got == response.outputs.end() || agrees(*output.expected, got->second)) continue;
    all_agree = false;
    if (output.expected->whole) {
      is_whole_one_wrong = true;
    } else {
      is_nothing_written = is_nothing_written || is_unwritten(got->second);
      wrong += count_telling(*output.expected, got->second);
    }
    if (!question.on_the_way.empty()) break;
  }
  whole = whole || (is_whole_one_wrong && !is_nothing_written);
  return wrong >= kNoAccident ? kConvincing : whole || all_agree ? 1 : 0;
}

struct Candidate {
  std::string name;
  std::vector<bool> reproduced = {};  // one per failing case of the suite that was asked so far
  std::size_t n_reproduced = 0;
  std::size_t evidence = 0;
  std::size_t of_traps = 0;     // the part of `evidence` that comes from traps
  std::size_t n_elsewhere = 0;  // reproduced failing cases of other suites

  std::pair<std::size_t, std::size_t> rank() const { return {n_reproduced, n_elsewhere}; }
};

std::vector<const Asked*> failing_cases(std::span<const Asked> asked, const Suite& suite) {
  std::vector<const Asked*> failing;
  for (const Asked& one : asked.subspan(suite.first, suite.last - suite.first)) {
    if (!one.right) failing.push_back(&one);
  }
  return failing;
}

// Where a mistake must be right if the student's code is right: everywhere, or only in the
// functions that fail in the suite.
enum class Scope { Everywhere, Functions };

// The failing cases of a suite. Most of the time of a diagnosis goes into asking programs about
// them.
class Failures {
 public:
  Failures(const fs::path& folder, const Judged& judged, const Suite& suite,
           const KnownMistakes& mistakes, Scope scope)
      : folder_(folder),
        asked_(judged.asked),
        suite_(suite),
        mistakes_(mistakes),
        scope_(scope),
        failed_(failing_cases(judged.asked, suite)) {
    for (const Asked* one : failed_) functions_.insert(one->question->request.function);
  }

  bool empty() const { return failed_.empty(); }

  std::size_t half() const { return (failed_.size() + 1) / 2; }

  // True if Scope::Functions compares fewer cases than Scope::Everywhere. False for a block: its
  // steps are judged.
  bool can_narrow() const {
    const auto in_steps = [](const Asked* one) { return !one->question->on_the_way.empty(); };
    const auto is_other = [&](const Asked& one) {
      return one.right && !functions_.contains(one.question->request.function);
    };
    return std::ranges::none_of(failed_, in_steps) && std::ranges::any_of(asked_, is_other);
  }

  bool rules_out(const std::string& name) const {
    return scope_ == Scope::Everywhere && mistakes_.is_ruled_out(folder_ / name, asked_);
  }

  void ask_next(Candidate& one) const {
    const Asked& failed = *failed_[one.reproduced.size()];
    const bool same = mistakes_.reproduces(folder_ / one.name, failed);
    one.reproduced.push_back(same);
    one.n_reproduced += same;
    if (same) add_evidence(one, failed);
  }

  // Asks the remaining cases. False if the mistake is not eligible, or reproduces fewer cases than
  // `least`; in the second case it stops early.
  bool finish(Candidate& one, std::size_t least) const {
    while (one.reproduced.size() < failed_.size()) {
      if (one.n_reproduced + failed_.size() - one.reproduced.size() < least) return false;
      ask_next(one);
    }
    const fs::path worker = folder_ / one.name;
    if (one.n_reproduced < least) return false;
    const auto as_right = [&](const Asked& asked) {
      return !asked.right || !counts(asked) || mistakes_.is_right(worker, asked);
    };
    if (!std::ranges::all_of(asked_, as_right)) return false;
    bool explains_all = one.n_reproduced == failed_.size();
    for (std::size_t i = 0; i < asked_.size(); ++i) {
      if (i >= suite_.first && i < suite_.last) continue;
      if (asked_[i].right) continue;
      if (!mistakes_.reproduces(worker, asked_[i])) {
        explains_all = false;
        continue;
      }
      one.n_elsewhere += 1;
      add_evidence(one, asked_[i]);
    }
    // A trap hides the number: any number out of range explains some of the cases.
    return one.evidence >= kConvincing && (explains_all || one.evidence > one.of_traps);
  }

 private:
  static void add_evidence(Candidate& one, const Asked& failed) {
    const std::size_t found = evidence(failed);
    one.evidence += found;
    if (failed.outcome.stopped_by_a_trap()) one.of_traps += found;
  }

  bool counts(const Asked& asked) const {
    return scope_ == Scope::Everywhere || functions_.contains(asked.question->request.function);
  }

  fs::path folder_;
  std::span<const Asked> asked_;
  Suite suite_;
  const KnownMistakes& mistakes_;
  Scope scope_;
  std::vector<const Asked*> failed_;
  std::set<std::string> functions_;
};

// The mistakes that explain the most cases, in the order of the catalogue.
std::vector<Candidate> best_candidates(const fs::path& folder, const Failures& failures) {
  std::vector<Candidate> all;
  for (const nlohmann::json& program : sentences(folder)) {
    const std::string name = name_of(program);
    if (!fs::exists(folder / name) || failures.rules_out(name)) continue;
    failures.ask_next(all.emplace_back(Candidate{name}));
  }
  // Begin with those that reproduce the first case: the right one is nearly always among them, and
  // then the others can stop early.
  std::vector<bool> chosen(all.size(), false);
  std::pair<std::size_t, std::size_t> most = {failures.half(), 0};
  for (const bool reproduces_first : {true, false}) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].reproduced[0] != reproduces_first) continue;
      if (!failures.finish(all[i], most.first) || all[i].rank() < most) continue;
      if (all[i].rank() > most) chosen.assign(all.size(), false);
      most = all[i].rank();
      chosen[i] = true;
    }
  }
  std::vector<Candidate> best;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (chosen[i]) best.push_back(std::move(all[i]));
  }
  return best;
}

// Several mistakes reproduce the same cases: finds the one that answers fresh cases as the
// student's code does; nullopt if fresh cases do not decide.
std::optional<Candidate> decide(const fs::path& folder, std::span<const Candidate> tied,
                                const fs::path& judged, const std::string& suite) {
  std::optional<Candidate> best = tied.front();
  for (const Candidate& other : tied.subspan(1)) {
    const Rivals rivals{folder / best->name, folder / other.name};
    const Score score = fresh_cases(judged, rivals, suite, kRoundsOfRivals);
    if (score.first > 0 && score.second == 0) continue;
    if (score.second == 0 || score.first > 0) return {};
    best = other;
  }
  return best;
}

// "n = 37" and "n = 53" are the same case with other sizes.
std::string without_digits(std::string name) {
  std::erase_if(name, [](char c) { return c >= '0' && c <= '9'; });
  return name;
}

// True if the student's code answers fresh cases as the mistake does: all of them or, if the
// mistake explains only some of the failing cases, fresh cases of that kind.
bool is_confirmed(const fs::path& folder, const Candidate& chosen, const Judged& judged,
                  const Suite& suite) {
  const Rivals both{judged.program, folder / chosen.name};
  if (both.first == both.second) return true;  // a program of the catalogue is judged
  std::vector<std::string> explained;
  std::vector<std::string> unexplained;  // with digits: of two sizes, one may be explained
  for (const Asked* failed : failing_cases(judged.asked, suite)) {
    const std::string& name = failed->question->name;
    if (chosen.reproduced[explained.size() + unexplained.size()]) {
      explained.push_back(without_digits(name));
    } else {
      unexplained.push_back(name);
    }
  }
  const Score score = fresh_cases(judged.program, both, suite.name, kRoundsToConfirm);
  if (score.cases == 0) return false;  // the referee did not run
  return std::ranges::all_of(score.lines, [&](const Score::Line& line) {
    if (line.same || unexplained.empty()) return line.same;
    return std::ranges::find(unexplained, line.question) != unexplained.end() ||
           std::ranges::find(explained, without_digits(line.question)) == explained.end();
  });
}

}  // namespace

// A wrong program of stage 11 contains only the wrong function. For other functions it answers "not
// written", which rules out nothing.
bool KnownMistakes::is_right(const fs::path& mistake, const Asked& one) const {
  const Outcome outcome = ask_known(mistake, one.question->request);
  const bool is_written = outcome.kind != Outcome::Kind::Answered ||
                          outcome.response.status != Response::Status::NotWritten;
  return !is_written || one.would_be_right(outcome);
}

bool KnownMistakes::reproduces(const fs::path& mistake, const Asked& failed) const {
  const Outcome outcome = ask_known(mistake, failed.question->request);
  return alike(*failed.question, failed.outcome, outcome) && !failed.would_be_right(outcome);
}

std::optional<KnownMistake> find_mistake(const fs::path& folder, const Judged& judged,
                                         const Suite& suite, const KnownMistakes& mistakes) {
  const Failures failures(folder, judged, suite, mistakes, Scope::Everywhere);
  if (failures.empty()) return {};
  std::vector<Candidate> best = best_candidates(folder, failures);
  // Our functions call each other, so a mistake in one spoils others. The student's functions need
  // not call each other.
  if (best.empty() && failures.can_narrow()) {
    best = best_candidates(folder, {folder, judged, suite, mistakes, Scope::Functions});
  }
  if (best.empty()) return {};
  // If two explain as many cases, but different ones, the first in the catalogue is taken.
  std::erase_if(best, [&](const Candidate& one) { return one.reproduced != best[0].reproduced; });
  const std::optional<Candidate> chosen = decide(folder, best, judged.program, suite.name);
  if (!chosen || !is_confirmed(folder, *chosen, judged, suite)) return {};
  const std::vector<const Asked*> failing = failing_cases(judged.asked, suite);
  const auto first = std::ranges::find(chosen->reproduced, true) - chosen->reproduced.begin();
  return KnownMistake{chosen->name, chosen->n_reproduced, failing.size(),
                      failing[static_cast<std::size_t>(first)]->question->name};
}

std::string mistake_sentence(const fs::path& folder, const KnownMistake& mistake) {
  for (const nlohmann::json& program : sentences(folder)) {
    if (name_of(program) != mistake.name) continue;
    const auto sentence = program.at(language()).get<std::string>();
    const std::size_t rest = mistake.failed - mistake.reproduced;
    if (rest == 0) return say("known_mistake", sentence);
    return say(rest == 1 ? "known_mistake_but_one" : "known_mistake_in_part", mistake.reproduced,
               mistake.failed, sentence, rest);
  }
  return {};
}

}  // namespace stagecraft::stages
