// For a program that runs kernels of others in its own process: the worker of stage 11, and
// `./stage story --mine 11`. What others wrote (the guest) is compiled by tools/cuda_compile.py, so
// that the checker sees every access of it.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

namespace cuda_emulator {

// Calls code of the guest, which launches its kernels. While it runs, the guest's host code may
// write to its own part of the stack alone, and its kernels to device memory, to shared arrays and
// to their own stacks. False: host code of the guest was ended, and a finding says why. Nothing of
// that call is destroyed then. Not from within another such call.
bool call_guest(const std::function<void()>& call);

// A buffer of device memory; findings call it by its name.
class DeviceArray {
 public:
  DeviceArray(const std::string& name, std::size_t size);  // that nobody has written
  DeviceArray(const std::string& name, std::span<const float> values);
  ~DeviceArray();
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  float* data() { return data_; }
  // All values; `unwritten` in the place of those that nobody has written.
  void read(std::span<float> values, float unwritten) const;

 private:
  float* data_ = nullptr;
};

// The records of all launches and findings since the last call, as in report.cpp, with file and
// line in the place of program counters.
std::string take_report();

}  // namespace cuda_emulator
