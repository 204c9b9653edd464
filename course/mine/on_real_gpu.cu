// A GPU has its own memory: the inputs of kernels are copied to it before each call, and their
// results are copied back. (The engine's CUDA backend copies the weights once, when it opens a
// model.)
#include <vector>

#include "course/mine/on_gpu.h"
#include "cuda_emulator.h"

namespace stagecraft {
namespace {

// Keeps the first error of several calls.
class FirstError {
 public:
  void note(cudaError_t error) {
    if (error_ == cudaSuccess) error_ = error;
  }
  bool is_there() const { return error_ != cudaSuccess; }
  const char* text() const { return cudaGetErrorString(error_); }

 private:
  cudaError_t error_ = cudaSuccess;
};

// Device memory for all arrays of a call. It grows and is kept: cudaMalloc takes longer than a
// kernel. Only one thread computes at a time.
struct DeviceMemory {
  float* data = nullptr;
  std::size_t size = 0;  // in floats

  void grow(std::size_t wanted, FirstError& error) {
    if (wanted <= size) return;
    error.note(cudaFree(data));
    data = nullptr;
    size = 0;
    error.note(cudaMalloc(&data, wanted * sizeof(float)));
    if (!error.is_there()) size = wanted;
  }
};

// Arrays are aligned to 256 bytes, as those of cudaMalloc are.
std::size_t rounded(std::size_t n) { return (n + 63) / 64 * 64; }

}  // namespace

std::string run_on_device(Numbers inputs, std::span<float> output, const Launch& launch) {
  static DeviceMemory memory;
  FirstError error;
  std::size_t wanted = rounded(output.size());
  for (const std::span<const float> numbers : inputs) wanted += rounded(numbers.size());
  memory.grow(wanted, error);
  if (error.is_there()) return error.text();

  float* at = memory.data;
  std::vector<const float*> in;
  for (const std::span<const float> numbers : inputs) {
    error.note(cudaMemcpy(at, numbers.data(), numbers.size_bytes(), cudaMemcpyHostToDevice));
    in.push_back(at);
    at += rounded(numbers.size());
  }
  launch(in, at);
  error.note(cudaGetLastError());  // from a launch with a wrong shape
  // Waits for the kernels, and returns their errors.
  error.note(cudaMemcpy(output.data(), at, output.size_bytes(), cudaMemcpyDeviceToHost));
  return error.is_there() ? error.text() : "";
}

}  // namespace stagecraft
