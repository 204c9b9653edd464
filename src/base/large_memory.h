#pragma once

#include <cstddef>

namespace stagecraft {

// Zeroed memory for large data that is read many times. It uses huge pages if the system has them,
// which avoids most TLB misses. Pages that are never touched cost nothing.
class LargeMemory {
 public:
  LargeMemory() = default;
  explicit LargeMemory(std::size_t bytes);  // throws std::bad_alloc
  ~LargeMemory();
  LargeMemory(LargeMemory&& other) noexcept;
  LargeMemory& operator=(LargeMemory&& other) noexcept;

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace stagecraft
