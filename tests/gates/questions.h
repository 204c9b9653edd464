#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <iterator>

#include "course/judge/gate.h"

namespace stagecraft::stages {

// What the gates of all stages ask with.

// The dumped cases for which `wanted` holds, each judged; code that is not written is asked once.
template <class Wanted>
void judge_dumps(const std::string& function, Wanted wanted) {
  for (const Case& one : dumped_cases(function)) {
    if (wanted(one) && !judge(one) && ::testing::Test::IsSkipped()) return;
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

// Whole numbers (tokens, lengths) as an input, and as the one right answer.
inline Tensor numbers(const std::vector<int>& values) {
  return {{values.size()}, {values.begin(), values.end()}};
}

inline Expected exactly(const std::vector<int>& values) {
  return {{values.size()}, {values.begin(), values.end()}, std::vector<double>(values.size(), 0.0)};
}

// A StopReason that came as a number.
inline std::string reason_name(double reason) {
  constexpr const char* kNames[] = {"EndToken", "MaxTokens", "ContextFull", "Stopped"};
  const bool known = reason >= 0.0 && reason < static_cast<double>(std::size(kNames));
  return known ? kNames[static_cast<std::size_t>(reason)] : fmt::format("{}", reason);
}

}  // namespace stagecraft::stages
