#pragma once

#include <cstddef>

// The memory of the GPU, for code without CUDA. These functions throw Error if they fail. A copy to
// the host returns when it is done. Later copies and launches see what the others wrote.
namespace stagecraft::cuda {

const char* device_kind();  // "cuda", or "cuda-emulator"

// The kernels are compiled for GPUs of this compute capability and newer ones.
inline constexpr int kOldestMajor = 8, kOldestMinor = 0;
struct Capability {
  int major = 0, minor = 0;
};
Capability use_device();  // the first GPU; throws if there is none
void* allocate(std::size_t bytes);
void release(void* memory) noexcept;
void upload(void* to, const void* from, std::size_t bytes);
void download(void* to, const void* from, std::size_t bytes);
void copy(void* to, const void* from, std::size_t bytes);
void clear(void* memory, std::size_t bytes);
void finish();  // waits for all kernels; throws if one failed

// Launches can be recorded, and the record (a graph of CUDA) repeated with one call. What the
// kernels get as arguments, pointers and numbers of rows, is recorded too: the memory that they
// point to must outlive the record.
void* make_stream();
void release_stream(void* stream) noexcept;
// Between these two, the launches of this thread are recorded and not run. Nothing may be copied or
// allocated meanwhile.
void begin_record(void* stream);
void* end_record(void* stream);
void repeat(void* record, void* stream);
void release_record(void* record) noexcept;

// Where the launches of this thread go; null: CUDA's default stream. Defined in a file that nvcc
// does not compile.
void*& current_stream();

// Throws Error: "cuda: <what>: <why>". Defined in a file that nvcc does not compile.
[[noreturn]] void fail(const char* what, const char* why);

}  // namespace stagecraft::cuda
