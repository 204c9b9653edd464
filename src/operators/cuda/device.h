#pragma once

#include <cstddef>

// The memory of the GPU, for code that is not compiled as CUDA. These functions throw Error if they
// fail; those marked noexcept ignore failures. download() waits for all kernels, and throws if one
// failed. It returns when the bytes are in the host's memory. Later copies and launches see what
// earlier ones wrote.
namespace stagecraft::cuda {

const char* device_kind();  // "cuda", or "cuda-emulator"

// The kernels are compiled for GPUs of this compute capability and newer ones.
inline constexpr int kOldestMajor = 8, kOldestMinor = 0;
struct Capability {
  int major = 0, minor = 0;
};
Capability use_device();            // the first GPU; throws if there is none
void* allocate(std::size_t bytes);  // not cleared
void release(void* memory) noexcept;
void upload(void* to, const void* from, std::size_t bytes);
void download(void* to, const void* from, std::size_t bytes);
void copy(void* to, const void* from, std::size_t bytes);
void clear(void* memory, std::size_t bytes);  // writes zeros
void check_launches();                        // throws if a kernel could not be launched
void finish();                                // waits for all kernels; throws if one failed

// Launches can be recorded. The record (a CUDA graph) is then repeated with one call. The record
// contains the arguments of the kernels, such as pointers and numbers of rows. So the memory that
// these pointers point to must outlive the record.
void* make_stream();
void release_stream(void* stream) noexcept;
// Between these two calls, the launches of this thread are recorded and not run. The thread must
// not copy or allocate memory of the GPU between them.
void begin_record(void* stream);
void* end_record(void* stream);  // null: the GPU has no memory for the record
void repeat(void* record, void* stream);
void release_record(void* record) noexcept;

// The stream that this thread launches kernels in; null: CUDA's default stream. Defined in a file
// that nvcc does not compile.
void*& current_stream();

// Throws Error: "cuda: <what>: <why>". Defined in a file that nvcc does not compile.
[[noreturn]] void fail(const char* what, const char* why);

}  // namespace stagecraft::cuda
