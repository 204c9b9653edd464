#include "course/judge/gate.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "checkpoint/safetensors.h"
#include "course/judge/case_names.h"
#include "course/judge/kept_requests.h"
#include "course/judge/known_answers.h"
#include "course/judge/many_programs.h"
#include "course/judge/messages.h"
#include "course/judge/paths.h"
#include "course/judge/referee.h"

namespace stagecraft::stages {
namespace {

constexpr const char* kNotWritten = "not-written";  // Python looks for this, not for a sentence
constexpr std::size_t kMaxProblem = 32u << 10;      // bytes of the message about a case

// True if a text contains a name as a whole word.
bool names_as_a_word(std::string_view text, std::string_view name) {
  const auto is_letter = [&](std::size_t at) {
    return at < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[at])) != 0 || text[at] == '_');
  };
  for (std::size_t at = text.find(name); at != text.npos; at = text.find(name, at + 1)) {
    if (!is_letter(at - 1) && !is_letter(at + name.size())) return true;
  }
  return false;
}

std::string what_is_wrong(const Case& question, std::size_t call, const std::string& output,
                          const Expected& expected, const Tensor& got) {
  const std::size_t calls = question.request.calls;
  const Case::Describe& describe =
      call <= calls ? question.describe : question.others[call - calls - 1].describe;
  const std::string described = describe ? describe(output, got) : std::string();
  if (!described.empty()) return described;
  const std::string name = call <= calls ? output : output_name(output, call);
  const std::string what = diagnose(question.request.function, name, expected, got);
  const auto& inputs =
      call <= calls ? question.request.inputs : question.request.others[call - calls - 1].inputs;
  const auto before = inputs.find(output);
  if (before == inputs.end()) return what;
  const std::size_t unchanged = count_unchanged(expected, got, before->second);
  if (unchanged == 0) return what;
  return what + "\n  " + (unchanged == 1 ? say("unchanged_one") : say("unchanged", unchanged));
}

// Describes the first wrong intermediate result of a response, for the student; empty if none is
// wrong.
std::string first_departure(const Case& question, const Response& response) {
  std::size_t seen = 0;
  for (const auto& [name, expected] : question.on_the_way) {
    const auto got = response.outputs.find(name);
    if (got == response.outputs.end()) continue;
    if (agrees(expected, got->second)) {
      ++seen;
      continue;
    }
    const std::string what = diagnose(question.request.function, name, expected, got->second);
    return seen == 0 ? what : what + "\n  " + say("first_departure");
  }
  return {};
}

// How this call differs from the first one; empty for the first.
std::string circumstances(const Request& request, std::size_t call) {
  if (request.at_once) return say("at_once", request.n_calls());
  if (call == 1) return {};
  if (call <= request.calls) return say("same_twice");
  const Request::Other& other = request.others[call - request.calls - 1];
  const bool first_again = std::ranges::equal(
      other.inputs, request.inputs,
      [](const auto& a, const auto& b) { return a.second.values == b.second.values; });
  return first_again && other.scalars == request.scalars && other.texts == request.texts
             ? say("same_again")
             : say("in_turn", call);
}

// Compares all outputs of all calls with the expected ones; empty if all are right.
std::string compare(const Case& question, const Response& response) {
  for (std::size_t call = 1; call <= question.request.n_calls(); ++call) {
    for (const auto& [name, expected] : expected_of(question, call)) {
      const auto got = response.outputs.find(output_name(name, call));
      if (got == response.outputs.end()) return say("no_answer", name);
      if (agrees(expected, got->second)) continue;
      const std::string what = what_is_wrong(question, call, name, expected, got->second);
      const std::string when = circumstances(question.request, call);
      if (!when.empty()) return when + "\n  " + what;
      const std::string departure = first_departure(question, response);
      return departure.empty() ? what : departure;
    }
  }
  return {};
}

Expected read_expected(const StoredTensor& stored, double tolerance) {
  Expected expected;
  expected.shape = stored.shape;
  expected.values.resize(stored.bytes.size() / sizeof(double));
  if (stored.dtype != DType::F64) throw Error("tensor '{}': expected F64", stored.name);
  if (!expected.values.empty()) {
    std::memcpy(expected.values.data(), stored.bytes.data(), stored.bytes.size());
  }
  expected.allowed.assign(expected.values.size(), tolerance);
  return expected;
}

std::uint64_t& rounds() {
  static std::uint64_t count = 0;
  return count;
}

std::vector<Asked>& history() {
  static std::vector<Asked> all;
  return all;
}

// Bytes of numbers in a right answer.
std::size_t expected_bytes(const Case& question) {
  std::size_t n = 0;
  for (const auto& [name, expected] : question.expected) n += expected.values.size();
  for (const auto& [name, expected] : question.on_the_way) n += expected.values.size();
  return n * question.request.calls * sizeof(float);
}

// True if the code threw an exception that is no Error.
bool threw(const Outcome& outcome) {
  return outcome.kind == Outcome::Kind::Answered &&
         outcome.response.status == Response::Status::Threw;
}

std::string not_an_error(const std::string& message) {
  return message.empty() ? say("threw_no_exception") : say("not_an_error", message);
}

// True if the code threw an Error, or accepted what it must refuse with one. Then the message says
// what is wrong, and no place in memory has to be searched.
bool is_about_an_error(const Case& question, const Outcome& outcome, const std::string& problem) {
  if (outcome.kind != Outcome::Kind::Answered) return false;
  const Response& response = outcome.response;
  if (response.status == Response::Status::Refused || problem == say("not_refused")) return true;
  return std::ranges::any_of(question.expected, [&](const auto& one) {
    const auto got = response.outputs.find(one.first);
    return one.first.ends_with("Error") && got != response.outputs.end() &&
           !agrees(one.second, got->second);
  });
}

// If the outcome breaks no rule, judges the numbers of the answer.
bool judge_answer(const Case& question,
                  const std::function<std::string(const Response&)>& find_problem) {
  const bool refusable = question.request.inputs.contains("refusable");
  return judge_by(question, [=](const Outcome& outcome) {
    if (refusable && threw(outcome)) return not_an_error(outcome.response.message);
    const std::string problem = broken_rule(outcome);
    return problem.empty() ? find_problem(outcome.response) : problem;
  });
}

// True if a case of several threads is wrong, and every case before it that calls the same function
// is right.
bool is_wrong_only_at_once(const Case& question) {
  return question.request.at_once && std::ranges::none_of(history(), [&](const Asked& one) {
           return !one.right && one.question->request.function == question.request.function;
         });
}

// "[1, 2]"; a matrix as "[[1], [2]]".
std::string text_of(const Tensor& tensor) {
  if (tensor.shape.size() != 2 || tensor.values.empty()) {
    return fmt::format("[{}]", fmt::join(tensor.values, ", "));
  }
  const std::span<const float> values(tensor.values);
  std::vector<std::string> rows;
  for (std::size_t at = 0; at < values.size(); at += tensor.shape[1]) {
    rows.push_back(fmt::format("[{}]", fmt::join(values.subspan(at, tensor.shape[1]), ", ")));
  }
  return fmt::format("[{}]", fmt::join(rows, ", "));
}

// The inputs of a case as text: its single numbers, and its tensors if they are small enough to
// follow by hand.
std::string small_inputs(const Case& question) {
  constexpr std::size_t kMaxNumbers = 12;
  const Request& request = question.request;
  std::size_t n = 0;
  std::vector<std::string> all;
  for (const auto& [name, tensor] : request.inputs) {
    if (name == "refusable") continue;  // only for the worker
    n += tensor.values.size();
    if (n > kMaxNumbers) break;
    all.push_back(question.texts.contains(name)
                      ? fmt::format("{} = {}", name, quoted(text_of_bytes(tensor.values)))
                      : fmt::format("{} = {}", name, text_of(tensor)));
  }
  if (n > kMaxNumbers) all.clear();
  for (const auto& [name, value] : request.scalars) {
    all.push_back(fmt::format("{} = {}", name, static_cast<float>(value)));
  }
  return request.inputs.empty() ? "" : fmt::format("{}", fmt::join(all, ", "));
}

// What malloc and free of the C library print before they end a program.
bool is_of_allocator(std::string_view printed) {
  return std::ranges::any_of(
      std::initializer_list<std::string_view>{
          "double free", "free(): ", "munmap_chunk(): ", "malloc", "realloc(): ", "corrupted "},
      [&](std::string_view begin) { return printed.starts_with(begin); });
}

std::string indented(const std::string& lines) {
  std::string result = "    ";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    result += lines[i];
    if (lines[i] == '\n' && i + 1 < lines.size()) result += "    ";
  }
  return result;
}

}  // namespace

const std::vector<Asked>& asked() { return history(); }

bool skips_unwritten(const Outcome& outcome) {
  if (outcome.kind != Outcome::Kind::Answered ||
      outcome.response.status != Response::Status::NotWritten) {
    return false;
  }
  ::testing::Test::RecordProperty(kNotWritten, outcome.response.message);
  [] { GTEST_SKIP() << say("not_written"); }();
  return true;
}

void must_show(bool shown, const std::string& what) {
  if (!shown) throw Error("the gate: expected a case that shows {}", what);
}

std::string broken_rule(const Outcome& outcome) {
  switch (outcome.kind) {
    case Outcome::Kind::Crashed:
      if (outcome.printed_too_much) return say("printed_too_much", kMaxPrinted >> 20);
      if (outcome.divided_by_zero()) return say("divided_by_zero");
      return outcome.stopped_by_a_trap() ? say("trapped") : say("crashed", outcome.detail);
    case Outcome::Kind::Hung:
      if (outcome.printed_bytes < kMuchPrinted) return say("hung", outcome.detail);
      return say("hung_printing", outcome.detail, outcome.printed_bytes >> 20);
    case Outcome::Kind::Exited:
      return say("exited", outcome.detail);
    case Outcome::Kind::NoAnswer:
      return say("no_answer", outcome.detail);
    case Outcome::Kind::Answered:
      break;
  }
  const Response& response = outcome.response;
  if (response.status != Response::Status::Done) {
    return response.message.empty() ? say("threw_no_exception") : say("threw", response.message);
  }
  if (!response.overrun.empty()) {
    return say("overrun", response.overrun, say("side_" + response.overrun_side));
  }
  if (!response.changed_input.empty()) return say("input_changed", response.changed_input);
  return {};
}

bool judge_by(const Case& question, const FindProblem& find_problem) {
  if (is_referee()) {
    referee(question, find_problem);
    return true;
  }
  if (has_many_programs()) {
    ask_many_programs(question, find_problem);
    return true;
  }
  if (has_hung(history(), question.request.function)) {  // do not wait for it again
    ADD_FAILURE() << name_in_words(question.name) << "\n  "
                  << say("not_asked", question.request.function);
    ::testing::Test::RecordProperty("not-tried", "yes");
    return false;
  }
  const std::string kept = keep_request(question, history().size());
  // Twice the expected size: no known mistake makes a larger answer.
  const std::size_t most = std::max(kMostAnswerBytes, 2 * expected_bytes(question));
  Outcome outcome = ask_judged(question.request, most);
  if (skips_unwritten(outcome)) return false;
  std::string problem = find_problem(outcome);
  if (!problem.empty()) keep_failure(kept, outcome, is_about_an_error(question, outcome, problem));
  const bool only_at_once = !problem.empty() && is_wrong_only_at_once(question);
  const std::string printed = std::move(outcome.printed);
  static std::size_t kept_bytes = 0;
  drop_numbers(outcome, problem.empty(), kept_bytes);
  history().push_back({std::make_shared<Case>(question),
                       std::make_shared<FindProblem>(find_problem), std::move(outcome),
                       problem.empty()});
  if (problem.empty()) return true;
  if (only_at_once) problem += "\n  " + say("only_at_once");
  if (const std::string inputs = small_inputs(question); !inputs.empty()) {
    problem += "\n  " + say("inputs", inputs);
  }
  if (!printed.empty()) {
    problem += "\n  " + say(is_of_allocator(printed) ? "allocator_printed" : "printed") + "\n" +
               indented(printed);
  }
  ADD_FAILURE() << name_in_words(question.name) << "\n  " << shortened(problem, kMaxProblem);
  return true;
}

bool judge(const Case& question) {
  return judge_answer(question,
                      [=](const Response& response) { return compare(question, response); });
}

bool judge_counts(const Case& question, const std::string& output,
                  const std::vector<double>& shares, std::size_t total) {
  return judge_answer(question, [=](const Response& response) -> std::string {
    const auto found = response.outputs.find(output);
    if (found == response.outputs.end()) return say("no_answer", output);
    Expected expected{{shares.size()}, {}, {}};
    Tensor counts{{shares.size()}, std::vector<float>(shares.size(), 0.0f)};
    for (const double share : shares) {
      expected.values.push_back(share * static_cast<double>(total));
      expected.allowed.push_back(share == 0.0 ? 0.0 : 2.0);
    }
    for (const float token : found->second.values) {
      if (!(token >= 0.0f && token < static_cast<float>(shares.size()))) {  // also refuses NaN
        return say("not_a_token", token, shares.size() - 1);
      }
      ++counts.values[static_cast<std::size_t>(token)];
    }
    if (agrees(expected, counts)) return {};
    return diagnose_shares(expected, counts, total);
  });
}

bool judge_refused(const Case& question, const Naming& naming) {
  // A name counts only as a whole word, also the right one: otherwise one message that joins all
  // names with "_" would name each of them, and none too much.
  std::vector<std::string> asked_for = naming.any_of;
  std::vector<std::string> foreign;
  for (const std::string& name : question.names) {
    const bool is_asked_for = std::ranges::any_of(naming.any_of, [&](const std::string& part) {
      return name.find(part) != std::string::npos;
    });
    if (is_asked_for) {
      asked_for.push_back(name);
    } else if (std::ranges::find(naming.may, name) == naming.may.end()) {
      foreign.push_back(name);
    }
  }
  return judge_by(question, [=](const Outcome& outcome) -> std::string {
    const std::string& message = outcome.response.message;
    if (threw(outcome)) return not_an_error(message);
    if (outcome.kind != Outcome::Kind::Answered ||
        outcome.response.status != Response::Status::Refused) {
      const std::string problem = broken_rule(outcome);
      return problem.empty() ? say("not_refused") : problem;
    }
    const bool named = std::ranges::any_of(
        asked_for, [&](const std::string& name) { return names_as_a_word(message, name); });
    if (!named) return say("not_named", naming.any_of.front(), message);
    const auto too_much = std::ranges::find_if(
        foreign, [&](const std::string& name) { return names_as_a_word(message, name); });
    return too_much == foreign.end()
               ? std::string()
               : say("named_too_much", naming.any_of.front(), *too_much, message);
  });
}

std::vector<Case> dumped_cases(const std::string& operator_name) {
  const std::string path = (test_data() / "operators" / (operator_name + ".safetensors")).string();
  const SafetensorsFile file(path);
  std::vector<Case> cases;
  for (const nlohmann::json& entry : nlohmann::json::parse(file.metadata().at("cases"))) {
    Case& one = cases.emplace_back();
    one.name = entry.at("name");
    one.request.function = operator_name;
    for (const auto& [name, value] : entry.at("scalars").items()) {
      if (value.is_number()) one.request.scalars[name] = value;
    }
    const std::string inputs = one.name + ".input.";
    const std::string results = one.name + ".expected.";
    for (const StoredTensor& stored : file.tensors()) {
      if (stored.name.starts_with(inputs)) {
        one.request.inputs[stored.name.substr(inputs.size())] = tensor_of(stored);
      } else if (stored.name.starts_with(results)) {
        const std::string result = stored.name.substr(results.size());
        one.expected[result] = read_expected(stored, entry.at("tolerance").at(result));
      }
    }
  }
  return cases;
}

Inputs::Inputs() {
  const std::optional<std::uint64_t> seed = number_setting("STAGE_SEED");
  engine_.seed((seed ? *seed : std::random_device()()) + rounds());
}

std::size_t Inputs::odd_size(std::size_t min, std::size_t max) {
  const std::size_t found = 2 * size(min / 2, (max - 1) / 2) + 1;
  must_show(found % 2 == 1 && found <= max, "an odd size");
  return found;
}

void Inputs::next_round() { ++rounds(); }

Tensor Inputs::tensor(std::vector<std::size_t> shape, float scale) {
  Tensor tensor;
  std::size_t n = 1;
  for (const std::size_t size : shape) n *= size;
  tensor.shape = std::move(shape);
  std::normal_distribution<float> normal(0.0f, scale);
  for (std::size_t i = 0; i < n; ++i) tensor.values.push_back(normal(engine_));
  return tensor;
}

std::size_t Inputs::size(std::size_t min, std::size_t max) {
  return std::uniform_int_distribution<std::size_t>(min, max)(engine_);
}

}  // namespace stagecraft::stages
