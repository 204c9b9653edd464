#include "course/judge/alike.h"

#include <algorithm>
#include <cmath>

namespace stagecraft::stages {
namespace {

constexpr double kRounding = 0x1p-20;  // a few roundings of the wrong number

double largest(const std::vector<double>& values) {
  double found = 0.0;
  for (const double value : values) {
    if (std::isfinite(value)) found = std::max(found, std::fabs(value));
  }
  return found;
}

bool is_all_zero(const Tensor& tensor) {
  return std::ranges::all_of(tensor.values, [](float value) { return value == 0.0f; });
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

// Two wrong answers are the same if they are as close to each other as a right answer must be to
// the expected one. If the wrong numbers are larger than the right ones, singly or as a whole, so
// is their rounding, and so is this tolerance. A result that is all 0 was probably never computed,
// so it only equals another one that is all 0.
bool same(const Tensor& student, const Tensor& mistake, const Expected& expected) {
  const std::size_t n = expected.values.size();
  if (student.shape != mistake.shape) return false;
  // The sizes differ if, for example, there is one token too many.
  if (student.values.size() != n) return student.values == mistake.values;
  if (is_all_zero(student) != is_all_zero(mistake)) return false;
  const double right = largest(expected.values);
  const double wrong = largest({mistake.values.begin(), mistake.values.end()});
  const double scale = right > 0.0 ? std::max(1.0, wrong / right) : 1.0;
  for (std::size_t i = 0; i < n; ++i) {
    if (!same(student.values[i], mistake.values[i], scale * expected.allowed[i])) return false;
  }
  return true;
}

bool name_the_same(const Case& question, const std::string& one, const std::string& other) {
  if (question.names.empty()) return one == other;
  return std::ranges::all_of(question.names, [&](const std::string& name) {
    return (one.find(name) == std::string::npos) == (other.find(name) == std::string::npos);
  });
}

// Outputs without an expected value per element are the tokens of a sweep. The same mistake in
// another arithmetic changes a few of them: up to 1% may differ.
bool nearly_equal(const Tensor& student, const Tensor& mistake) {
  if (student.shape != mistake.shape) return false;
  std::size_t other = 0;
  for (std::size_t i = 0; i < student.values.size(); ++i) {
    other += student.values[i] != mistake.values[i];
  }
  return other * 100 <= student.values.size();
}

const Tensor* find(const Response& response, const std::string& name) {
  const auto found = response.outputs.find(name);
  return found != response.outputs.end() ? &found->second : nullptr;
}

bool same_outputs(const Case& question, const Response& one, const Response& other) {
  if (question.expected.empty()) {
    return std::ranges::equal(one.outputs, other.outputs, [](const auto& a, const auto& b) {
      return a.first == b.first && nearly_equal(a.second, b.second);
    });
  }
  const bool in_steps = !question.on_the_way.empty();
  for (const Output& output : outputs_of(question)) {
    const Tensor* a = find(one, output.name);
    const Tensor* b = find(other, output.name);
    if (a == nullptr || b == nullptr) {
      if (a == b || in_steps) continue;  // a response need not contain a step
      return false;
    }
    const bool both_right = agrees(*output.expected, *a) && agrees(*output.expected, *b);
    if (!both_right && !same(*a, *b, *output.expected)) return false;
    if (!both_right && in_steps) return true;
  }
  return true;
}

}  // namespace

bool alike(const Case& question, const Outcome& one, const Outcome& other) {
  if (one.kind != other.kind) return false;
  if (one.kind == Outcome::Kind::Hung) return true;
  if (one.kind != Outcome::Kind::Answered) return one.detail == other.detail;
  const Response& a = one.response;
  const Response& b = other.response;
  if (a.status != b.status) return false;
  if (a.status != Response::Status::Done) return name_the_same(question, a.message, b.message);
  return a.overrun == b.overrun && a.overrun_side == b.overrun_side &&
         a.changed_input == b.changed_input && same_outputs(question, a, b);
}

}  // namespace stagecraft::stages
