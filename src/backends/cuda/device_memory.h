#pragma once

#include <span>
#include <utility>
#include <vector>

#include "operators/cuda/device.h"

namespace stagecraft::cuda {

// A piece of the GPU's memory that frees itself.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  explicit DeviceMemory(std::size_t bytes) : data_(bytes == 0 ? nullptr : allocate(bytes)) {}
  // A copy of what the host has.
  template <class T>
  explicit DeviceMemory(std::span<const T> values) : DeviceMemory(values.size_bytes()) {
    if (!values.empty()) upload(data_, values.data(), values.size_bytes());
  }
  ~DeviceMemory() {
    if (data_ != nullptr) release(data_);
  }
  DeviceMemory(DeviceMemory&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    std::swap(data_, other.data_);
    return *this;
  }

  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void* data_ = nullptr;
};

}  // namespace stagecraft::cuda
