#pragma once

#include <algorithm>
#include <functional>

#include "tensor/matrix.h"

namespace stagecraft {

// What the kernels of stage 11 take: a matrix without gaps between its rows. The view must outlive
// it.
class Compact {
 public:
  explicit Compact(MatrixView<const float> view);
  const float* data() const { return data_; }

 private:
  const float* data_;
  Matrix<float> copy_;
};

// Runs what launches kernels. Throws Error with the emulator's words if a launch had to be ended.
void on_gpu(const std::function<void()>& launch);

}  // namespace stagecraft
