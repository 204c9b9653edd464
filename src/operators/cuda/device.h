#pragma once

#include <cstddef>

// The memory of the GPU, for code without CUDA. These functions throw Error if they fail. Copies
// return when they are done.
namespace stagecraft::cuda {

const char* device_kind();  // "cuda", or "cuda-emulator"
void use_device();          // throws if there is no GPU that this program can run on
void* allocate(std::size_t bytes);
void release(void* memory) noexcept;
void upload(void* to, const void* from, std::size_t bytes);
void download(void* to, const void* from, std::size_t bytes);
void copy(void* to, const void* from, std::size_t bytes);
void clear(void* memory, std::size_t bytes);
void finish();  // waits for all kernels; throws if one failed

// Throws Error: "cuda: <what>: <why>". Defined in a file that nvcc does not compile.
[[noreturn]] void fail(const char* what, const char* why);

}  // namespace stagecraft::cuda
