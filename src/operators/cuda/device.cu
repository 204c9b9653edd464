#include "operators/cuda/device.h"

#include "cuda_emulator.h"

namespace stagecraft::cuda {
namespace {

void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) fail(what, cudaGetErrorString(error));
}

}  // namespace

const char* device_kind() {
#ifdef __CUDACC__
  return "cuda";
#else
  return "cuda-emulator";
#endif
}

void use_device() {
  int count = 0;
  check(cudaGetDeviceCount(&count), "expected a GPU and its driver");
  if (count == 0) fail("expected a GPU", "found none");
  check(cudaSetDevice(0), "first GPU");
}

void* allocate(std::size_t bytes) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, bytes), "memory of the GPU");
  return memory;
}

void release(void* memory) noexcept { cudaFree(memory); }

void upload(void* to, const void* from, std::size_t bytes) {
  check(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice), "copy to the GPU");
}

void download(void* to, const void* from, std::size_t bytes) {
  check(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost), "copy from the GPU");
}

void copy(void* to, const void* from, std::size_t bytes) {
  check(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToDevice), "copy on the GPU");
}

void clear(void* memory, std::size_t bytes) {
  check(cudaMemset(memory, 0, bytes), "clearing memory of the GPU");
}

void finish() {
  check(cudaGetLastError(), "launch of a kernel");
  check(cudaDeviceSynchronize(), "kernel");
}

}  // namespace stagecraft::cuda
