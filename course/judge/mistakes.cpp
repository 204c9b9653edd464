#include "course/judge/mistakes.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/mapped_file.h"
#include "course/judge/known_answers.h"
#include "course/judge/messages.h"
#include "course/judge/places.h"

namespace stagecraft::stages {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxRegistryBytes = 1u << 20;
constexpr std::size_t kNoAccident = 8;   // wrong elements that agree
constexpr double kRounding = 0x1p-20;    // a few roundings of the wrong number itself
constexpr std::size_t kMaxFailures = 8;  // questions put to every wrong program: a bound on time

// The wrong programs that have a sentence, in the order of the registry.
nlohmann::json sentences(const fs::path& folder) {
  const std::string path =
      (repository() / "course" / "mistakes" / folder.filename() / "mistakes.json").string();
  const nlohmann::json registry = nlohmann::json::parse(read_text_file(path, kMaxRegistryBytes));
  nlohmann::json found = nlohmann::json::array();
  for (const nlohmann::json& program : registry.at("programs")) {
    if (program.contains("en")) found.push_back(program);
  }
  return found;
}

std::string name_of(const nlohmann::json& program) {
  return fs::path(program.at("file").get<std::string>()).stem().string();
}

double largest(const std::vector<double>& values) {
  double found = 0.0;
  for (const double value : values) {
    if (std::isfinite(value)) found = std::max(found, std::fabs(value));
  }
  return found;
}

bool same(float student, float mistake, double allowed) {
  if (std::isnan(student) || std::isnan(mistake)) {
    return std::isnan(student) && std::isnan(mistake) &&
           is_untouched(student) == is_untouched(mistake);
  }
  const double off = std::fabs(static_cast<double>(student) - mistake);
  if (student == mistake || std::isinf(mistake)) return student == mistake;
  return off <= allowed + kRounding * std::fabs(mistake);
}

// Two wrong answers are the same if they are as near to each other as the case allows a right one
// to be to the truth; where the wrong numbers are larger than the right ones, alone or all
// together, so is their rounding.
bool same(const Tensor& student, const Tensor& mistake, const Expected& expected) {
  const std::size_t n = expected.values.size();
  if (student.shape != mistake.shape) return false;
  if (student.values.size() != n) return student.values == mistake.values;  // tokens: one too many
  const double right = largest(expected.values);
  const double wrong = largest({mistake.values.begin(), mistake.values.end()});
  const double scale = right > 0.0 ? std::max(1.0, wrong / right) : 1.0;
  for (std::size_t i = 0; i < n; ++i) {
    if (!same(student.values[i], mistake.values[i], scale * expected.allowed[i])) return false;
  }
  return true;
}

// Errors can be compared where it is known what they may name.
bool can_be_compared(const Case& question, const Outcome& outcome) {
  if (outcome.kind != Outcome::Kind::Answered) return false;
  return outcome.response.status == Response::Status::Done ||
         (outcome.response.status == Response::Status::Threw && !question.names.empty());
}

bool name_the_same(const Case& question, const std::string& one, const std::string& other) {
  return std::ranges::all_of(question.names, [&](const std::string& name) {
    return (one.find(name) == std::string::npos) == (other.find(name) == std::string::npos);
  });
}

// Outputs for which nothing is expected one by one are the tokens of a sweep, where the same
// mistake in other arithmetic puts a few elsewhere.
bool nearly_equal(const Tensor& student, const Tensor& mistake) {
  if (student.shape != mistake.shape) return false;
  std::size_t other = 0;
  for (std::size_t i = 0; i < student.values.size(); ++i) {
    other += student.values[i] != mistake.values[i];
  }
  return other * 100 <= student.values.size();
}

bool behave_alike(const Case& question, const Response& student, const Response& mistake) {
  if (student.status != mistake.status) return false;
  if (student.status == Response::Status::Threw) {
    return name_the_same(question, student.message, mistake.message);
  }
  if (student.overrun != mistake.overrun || student.changed_input != mistake.changed_input) {
    return false;
  }
  for (std::size_t call = 1; call <= question.request.calls; ++call) {
    for (const auto& [name, expected] : question.expected) {
      const auto ours = student.outputs.find(output_name(name, call));
      const auto theirs = mistake.outputs.find(output_name(name, call));
      const bool both = theirs != mistake.outputs.end();
      if ((ours != student.outputs.end()) != both) return false;
      if (both && !same(ours->second, theirs->second, expected)) return false;
    }
  }
  if (!question.expected.empty()) return true;
  return std::ranges::equal(
      student.outputs, mistake.outputs, [](const auto& one, const auto& other) {
        return one.first == other.first && nearly_equal(one.second, other.second);
      });
}

// How many elements are wrong, or with `nan` false: wrong numbers. NaN, like any other NaN, is weak
// evidence of what was done.
std::size_t wrong_elements(const Asked& asked, bool nan = true) {
  std::size_t wrong = 0;
  for (std::size_t call = 1; call <= asked.question.request.calls; ++call) {
    for (const auto& [name, expected] : asked.question.expected) {
      const auto got = asked.outcome.response.outputs.find(output_name(name, call));
      if (got == asked.outcome.response.outputs.end()) continue;
      wrong += count_wrong(expected, got->second);
      if (nan) continue;
      wrong -= static_cast<std::size_t>(
          std::ranges::count_if(got->second.values, [](float value) { return std::isnan(value); }));
    }
  }
  return wrong;
}

struct Evidence {
  std::vector<const Asked*> failed;   // what is to be explained
  std::vector<const Asked*> passed;   // of the same functions
  std::vector<const Asked*> earlier;  // whatever else was asked
};

Evidence sorted_out(std::span<const Asked> asked, std::size_t first) {
  Evidence found;
  for (const Asked& one : asked.subspan(first)) {
    if (!one.right && can_be_compared(one.question, one.outcome)) found.failed.push_back(&one);
  }
  const auto same_function = [&](const Asked& one) {
    return std::ranges::any_of(found.failed, [&](const Asked* failed) {
      return failed->question.request.function == one.question.request.function;
    });
  };
  for (const Asked& one : asked) {
    if (one.right && same_function(one)) {
      found.passed.push_back(&one);
    } else if (&one < asked.data() + first && can_be_compared(one.question, one.outcome)) {
      found.earlier.push_back(&one);
    }
  }
  // Most elements first: they tell most.
  std::ranges::stable_sort(found.failed, std::greater<>(),
                           [](const Asked* one) { return wrong_elements(*one); });
  if (found.failed.size() > kMaxFailures) found.failed.resize(kMaxFailures);
  return found;
}

bool explains(const fs::path& worker, const Asked& failed) {
  const Outcome outcome = ask_known(worker, failed.question.request);
  return can_be_compared(failed.question, outcome) && !failed.is_right(outcome) &&
         behave_alike(failed.question, failed.outcome.response, outcome.response);
}

bool explains_all(const fs::path& worker, const std::vector<const Asked*>& failed) {
  return std::ranges::all_of(failed, [&](const Asked* one) { return explains(worker, *one); });
}

// How many of the failures the mistake explains; 0 if that may be an accident.
std::size_t explained(const fs::path& worker, const std::vector<const Asked*>& failed) {
  std::size_t alike = 0;
  bool no_accident = false;
  for (const Asked* one : failed) {
    if (!explains(worker, *one)) continue;
    ++alike;
    no_accident |= wrong_elements(*one, false) >= kNoAccident;
  }
  return no_accident ? alike : 0;
}

// Does it fit all else that was asked? What it fails at need not be what the student's code did.
bool fits(const fs::path& worker, const std::vector<const Asked*>& earlier) {
  return std::ranges::all_of(earlier, [&](const Asked* one) {
    if (!one->right) return explains(worker, *one);
    return one->is_right(ask_known(worker, one->question.request));
  });
}

bool contradicted(const fs::path& worker, const std::vector<const Asked*>& passed) {
  return std::ranges::any_of(passed, [&](const Asked* one) {
    return !one->is_right(ask_known(worker, one->question.request));
  });
}

}  // namespace

std::string find_mistake(const fs::path& folder, std::span<const Asked> asked, std::size_t first,
                         const std::string& likely) {
  const Evidence found = sorted_out(asked, first);
  if (found.failed.empty()) return {};
  std::vector<std::string> names;
  for (const nlohmann::json& program : sentences(folder)) {
    if (fs::exists(folder / name_of(program))) names.push_back(name_of(program));
  }
  std::stable_partition(names.begin(), names.end(),
                        [&](const std::string& name) { return name == likely; });
  // Nearly always one explains everything, and the first question rules out nearly all others.
  std::string best;
  for (const std::string& name : names) {
    const fs::path worker = folder / name;
    if (!explains_all(worker, found.failed) || contradicted(worker, found.passed)) continue;
    if (fits(worker, found.earlier)) return name;
    if (best.empty()) best = name;
  }
  if (!best.empty()) return best;
  std::size_t most = 0;
  for (const std::string& name : names) {
    const fs::path worker = folder / name;
    const std::size_t n = explained(worker, found.failed);
    if (n <= most || contradicted(worker, found.passed)) continue;
    best = name;
    most = n;
  }
  return best;
}

std::string mistake_sentence(const fs::path& folder, const std::string& name) {
  for (const nlohmann::json& program : sentences(folder)) {
    if (name_of(program) == name) return program.at(language()).get<std::string>();
  }
  return {};
}

}  // namespace stagecraft::stages
