#pragma once

#include <functional>

#include "model/linear.h"

namespace stagecraft {

// The ways in which linear() of a --mine program multiplies, besides the textbook's: each is there
// where its stage is the student's, and says so before main() begins.
struct Ways {
  using Way = void(const Linear&, MatrixView<const float> x, MatrixView<float> y, ThreadPool&);
  Way* packed = nullptr;        // stage 9
  Way* quantized = nullptr;     // stage 10
  const float* head = nullptr;  // where the weight of the model's head lies, once it is opened
};
inline Ways ways;

}  // namespace stagecraft
