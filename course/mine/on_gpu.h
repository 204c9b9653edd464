#pragma once

#include <functional>
#include <initializer_list>
#include <span>
#include <string>

#include "tensor/matrix.h"

namespace stagecraft {

// A matrix without gaps between its rows, which the kernels of stage 11 need: the view itself, or a
// copy. The view must outlive it.
class Compact {
 public:
  explicit Compact(MatrixView<const float> view);
  std::span<const float> numbers() const { return numbers_; }

 private:
  Matrix<float> copy_;
  std::span<const float> numbers_;
};

using Numbers = std::initializer_list<std::span<const float>>;
// Launches kernels that read in[0], in[1] ... and write out: pointers to device memory.
using Launch = std::function<void(std::span<const float* const> in, float* out)>;

// Calls `launch` with the inputs in device memory, and fetches what it has written. Throws Error
// with the message of the emulator or of CUDA if something was wrong.
void on_gpu(Numbers inputs, std::span<float> output, const Launch& launch);

// The same, but returns the message instead of throwing; "" if nothing was wrong. on_emulator.cpp
// and on_real_gpu.cu define it, and a program has one of them.
std::string run_on_device(Numbers inputs, std::span<float> output, const Launch& launch);

}  // namespace stagecraft
