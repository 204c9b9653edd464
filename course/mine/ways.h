#pragma once

#include "model/linear.h"

namespace stagecraft {

// The ways in which linear() of a --mine program multiplies, besides the textbook's: each is there
// where its stage is the student's, and says so before main() begins.
struct Ways {
  using Way = void(const Linear&, MatrixView<const float> x, MatrixView<float> y, ThreadPool&);
  Way* packed = nullptr;      // stage 9
  Way* quantized = nullptr;   // stage 10
  Way* gpu = nullptr;         // stage 11
  std::size_t head_rows = 0;  // of the model's head, its vocabulary, once it is opened
};
inline Ways ways;

}  // namespace stagecraft
