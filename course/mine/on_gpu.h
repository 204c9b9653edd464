#pragma once

#include <algorithm>
#include <functional>

#include "tensor/matrix.h"

namespace stagecraft {

// A matrix without gaps between its rows, which the kernels of stage 11 need: the view itself, or a
// copy. The view must outlive it.
class Compact {
 public:
  explicit Compact(MatrixView<const float> view);
  const float* data() const { return data_; }

 private:
  const float* data_;
  Matrix<float> copy_;
};

// Calls `launch`, which launches kernels. Throws Error with the emulator's message if the emulator
// found a mistake.
void on_gpu(const std::function<void()>& launch);

}  // namespace stagecraft
