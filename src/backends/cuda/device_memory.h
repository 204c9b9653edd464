#pragma once

#include <compare>
#include <map>
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

// A stream, and the passes that were recorded in it.
class Recorder {
 public:
  Recorder() : stream_(make_stream()) {}
  ~Recorder() {
    forget();
    release_stream(stream_);
  }
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Calls launch() for the first pass of a kind. Later passes of this kind do the same launches
  // with the same arguments: for the second one, launch() is recorded, and the record is repeated
  // from then on. Returns whether it was.
  struct Kind {
    std::size_t rows, scored;
    bool chooses;  // tokens
    auto operator<=>(const Kind&) const = default;
  };
  template <class Launch>
  bool run(Kind kind, Launch&& launch) {
    const auto found = records_.find(kind);
    if (found == records_.end()) {
      launch();
      records_[kind] = nullptr;
      return false;
    }
    if (found->second == nullptr) found->second = record(launch);
    repeat(found->second, stream_);
    return true;
  }

  // Must be called before memory that the launches used is freed.
  void forget() noexcept {
    for (const auto& [kind, record] : records_) {
      if (record != nullptr) release_record(record);
    }
    records_.clear();
  }

 private:
  template <class Launch>
  void* record(Launch& launch) {
    begin_record(stream_);
    try {
      launch();
    } catch (...) {
      release_record(end_record(stream_));
      throw;
    }
    return end_record(stream_);
  }

  void* stream_;
  std::map<Kind, void*> records_;  // null: one pass of this kind has run
};

}  // namespace stagecraft::cuda
