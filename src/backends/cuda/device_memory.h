#pragma once

#include <compare>
#include <map>
#include <span>
#include <utility>

#include "operators/cuda/device.h"

namespace stagecraft::cuda {

// Owns an allocation in the GPU's memory. Constructors throw Error if it is full.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  explicit DeviceMemory(std::size_t bytes) : data_(bytes == 0 ? nullptr : allocate(bytes)) {}
  // A copy of `values`, which are in the host's memory.
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

// A stream, and the passes that were recorded for it.
class Recorder {
 public:
  Recorder() : stream_(make_stream()) {}
  ~Recorder() {
    forget();
    release_stream(stream_);
  }
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // All passes of a kind must do the same launches with the same arguments. The first pass of a
  // kind calls launch(). The second one calls launch() while it is recorded, and then runs the
  // record. Later ones only run the record. If the GPU has no memory for a record, passes call
  // launch(). Returns whether a record was run.
  struct Kind {
    std::size_t rows, scored;
    bool chooses;  // whether the pass chooses the likeliest tokens
    auto operator<=>(const Kind&) const = default;
  };
  template <class Launch>
  bool run(Kind kind, Launch&& launch) {
    const auto found = records_.find(kind);
    if (found == records_.end()) {
      launch();
      if (records_.size() == kMostKinds) forget();
      records_[kind] = nullptr;
      return false;
    }
    if (found->second == nullptr && has_memory_) {
      found->second = record(launch);
      has_memory_ = found->second != nullptr;
    }
    if (found->second == nullptr) {
      launch();
      return false;
    }
    repeat(found->second, stream_);
    return true;
  }

  // Must be called before memory that the launches used is freed.
  void forget() noexcept {
    for (const auto& [kind, record] : records_) {
      if (record != nullptr) release_record(record);
    }
    records_.clear();
    has_memory_ = true;
  }

 private:
  static constexpr std::size_t kMostKinds = 256;

  template <class Launch>
  void* record(Launch& launch) {
    begin_record(stream_);
    try {
      launch();
    } catch (...) {
      if (void* made = end_record(stream_)) release_record(made);
      throw;
    }
    return end_record(stream_);
  }

  void* stream_;
  std::map<Kind, void*> records_;  // null: passes of this kind have run, but there is no record
  bool has_memory_ = true;         // false: the last record found no memory
};

}  // namespace stagecraft::cuda
