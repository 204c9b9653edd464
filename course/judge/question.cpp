#include "course/judge/question.h"

#include <algorithm>

namespace stagecraft::stages {
namespace {

constexpr std::size_t kMaxKept = std::size_t{64} << 20;  // bytes of all wrong answers

}  // namespace

const std::map<std::string, Expected>& expected_of(const Case& question, std::size_t call) {
  const std::size_t calls = question.request.calls;
  return call <= calls ? question.expected : question.others.at(call - calls - 1).expected;
}

std::vector<Output> outputs_of(const Case& question) {
  std::vector<Output> all;
  for (const auto& [name, expected] : question.on_the_way) all.push_back({name, &expected});
  for (std::size_t call = 1; call <= question.request.n_calls(); ++call) {
    for (const auto& [name, expected] : expected_of(question, call)) {
      all.push_back({output_name(name, call), &expected});
    }
  }
  return all;
}

bool has_hung(std::span<const Asked> asked, const std::string& function) {
  return std::ranges::any_of(asked, [&](const Asked& one) {
    return one.outcome.kind == Outcome::Kind::Hung && one.question->request.function == function;
  });
}

void drop_numbers(Outcome& outcome, bool right, std::size_t& kept) {
  std::size_t bytes = 0;
  for (const auto& [name, tensor] : outcome.response.outputs) {
    bytes += sizeof(float) * tensor.values.size();
  }
  if (!right && kept + bytes <= kMaxKept) {
    kept += bytes;
    return;
  }
  outcome.response.outputs.clear();
  if (!right) outcome.kind = Outcome::Kind::NoAnswer;
}

}  // namespace stagecraft::stages
