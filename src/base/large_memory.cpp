#include "base/large_memory.h"

#include <sys/mman.h>

#include <new>
#include <utility>

namespace stagecraft {

LargeMemory::LargeMemory(std::size_t bytes) {
  if (bytes == 0) return;
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
#if defined(MADV_HUGEPAGE)
  ::madvise(memory, bytes, MADV_HUGEPAGE);  // only a request: ordinary pages are slower
#endif
  data_ = static_cast<std::byte*>(memory);
  size_ = bytes;
}

LargeMemory::~LargeMemory() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

LargeMemory::LargeMemory(LargeMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

LargeMemory& LargeMemory::operator=(LargeMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

}  // namespace stagecraft
