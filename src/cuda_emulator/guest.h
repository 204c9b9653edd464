// For a program that runs untrusted kernels in its own process: the worker of stage 11, and
// `./stage story --mine 11`. The untrusted code is called the guest. tools/cuda_compile.py compiles
// it, so that the checker sees each of its accesses.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

namespace cuda_emulator {

// Calls code of the guest, which launches its kernels. Meanwhile, the guest's host code may write
// only to its own part of the stack. Its kernels may write to device memory, to shared arrays and
// to their own stacks. Returns false if the guest's host code had to be ended; a finding says why.
// Then no destructors of that call run. Calls must not be nested.
bool call_guest(const std::function<void()>& call);

// A buffer of device memory. Findings show its name.
class DeviceArray {
 public:
  DeviceArray(const std::string& name, std::size_t size);  // counts as unwritten
  DeviceArray(const std::string& name, std::span<const float> values);
  ~DeviceArray();
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  float* data() { return data_; }
  // Copies all values. Elements that were never written become `unwritten`.
  void read(std::span<float> values, float unwritten) const;

 private:
  float* data_ = nullptr;
};

// The records of all launches and findings since the last call, in the format of report.cpp, but
// with file and line instead of program counters.
std::string take_report();

}  // namespace cuda_emulator
