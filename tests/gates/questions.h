#pragma once

#include <gtest/gtest.h>

#include "tests/gates/gate.h"

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

}  // namespace stagecraft::stages
