#include "operators/cuda/device.h"

#include <cstdio>

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

Capability use_device() {
  int count = 0;
  check(cudaGetDeviceCount(&count), "expected a GPU and its driver");
  if (count == 0) fail("expected a GPU", "found none");
  check(cudaSetDevice(0), "first GPU");
  Capability found;
  check(cudaDeviceGetAttribute(&found.major, cudaDevAttrComputeCapabilityMajor, 0), "first GPU");
  check(cudaDeviceGetAttribute(&found.minor, cudaDevAttrComputeCapabilityMinor, 0), "first GPU");
  return found;
}

void* allocate(std::size_t bytes) {
  void* memory = nullptr;
  const cudaError_t error = cudaMalloc(&memory, bytes);
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // clears the error; else the next launch would report it again
    size_t free = 0, all = 0;
    check(cudaMemGetInfo(&free, &all), "memory of the GPU");
    char text[100];
    std::snprintf(text, sizeof text, "expected %.2f GB more, found %.2f GB of %.2f GB free",
                  static_cast<double>(bytes) / 1e9, static_cast<double>(free) / 1e9,
                  static_cast<double>(all) / 1e9);
    fail("memory of the GPU", text);
  }
  check(error, "memory of the GPU");
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

void check_launches() { check(cudaGetLastError(), "launch of a kernel"); }

void finish() {
  check_launches();
  check(cudaDeviceSynchronize(), "kernel");
}

// Without cudaStreamNonBlocking: copies use the default stream, and the two streams must wait for
// each other.
void* make_stream() {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreate(&stream), "stream");
  return stream;
}

void release_stream(void* stream) noexcept { cudaStreamDestroy(static_cast<cudaStream_t>(stream)); }

void begin_record(void* stream) {
  check(cudaStreamBeginCapture(static_cast<cudaStream_t>(stream), cudaStreamCaptureModeThreadLocal),
        "recording a pass");
  current_stream() = stream;
}

void* end_record(void* stream) {
  current_stream() = nullptr;
  const cudaError_t launched = cudaGetLastError();  // a failed launch would be missing in the graph
  cudaGraph_t graph = nullptr;
  const cudaError_t ended = cudaStreamEndCapture(static_cast<cudaStream_t>(stream), &graph);
  if (launched != cudaSuccess) {
    if (graph != nullptr) cudaGraphDestroy(graph);
    cudaGetLastError();  // clears the error of the capture's end, as in allocate()
    check(launched, "launch of a kernel");
  }
  check(ended, "recording a pass");
  cudaGraphExec_t record = nullptr;
  const cudaError_t error = cudaGraphInstantiate(&record, graph, 0);
  cudaGraphDestroy(graph);
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // clears the error, as in allocate()
    return nullptr;
  }
  check(error, "recording a pass");
  return record;
}

void repeat(void* record, void* stream) {
  check(cudaGraphLaunch(static_cast<cudaGraphExec_t>(record), static_cast<cudaStream_t>(stream)),
        "repeating a pass");
}

void release_record(void* record) noexcept {
  cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(record));
}

}  // namespace stagecraft::cuda
