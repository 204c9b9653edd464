#include "guest.h"

#include <setjmp.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

#include "machine.h"

// Two tables, which tools/cuda_compile.py adds to each object file of the guest. One has the return
// address and the line of each call, the other has all functions. The linker defines symbols for
// the beginning and the end of both tables.
struct LineOfCall {
  cuda_emulator::Address pc;
  std::size_t line;
  const char* file;
};
extern "C" const LineOfCall __start_cuda_lines[] __attribute__((weak));
extern "C" const LineOfCall __stop_cuda_lines[] __attribute__((weak));
extern "C" const cuda_emulator::Address __start_cuda_functions[] __attribute__((weak));
extern "C" const cuda_emulator::Address __stop_cuda_functions[] __attribute__((weak));

namespace cuda_emulator {

namespace {

Address stack_end = 0;  // of the guest's part of the stack; 0: no guest is running
sigjmp_buf caller;

const std::vector<LineOfCall>& lines_of_calls() {
  static const auto* lines = [] {
    auto* all = new std::vector<LineOfCall>(__start_cuda_lines, __stop_cuda_lines);
    std::sort(all->begin(), all->end(), [](const auto& a, const auto& b) { return a.pc < b.pc; });
    return all;
  }();
  return *lines;
}

std::string line_of(Address pc) {
  const auto& lines = lines_of_calls();
  auto found = std::lower_bound(lines.begin(), lines.end(), pc,
                                [](const LineOfCall& line, Address a) { return line.pc < a; });
  if (found == lines.end() || found->pc != pc) return "?";
  return std::string(found->file) + ":" + std::to_string(found->line);
}

}  // namespace

bool is_guarded() { return stack_end != 0; }

bool guest_may_write(Address address, std::size_t bytes) {
  if (!is_guarded()) return true;
  const auto here = reinterpret_cast<Address>(__builtin_frame_address(0));
  return address >= here && address + bytes <= stack_end;
}

bool guest_may_launch(const void* kernel) {
  return !is_guarded() || std::find(__start_cuda_functions, __stop_cuda_functions,
                                    reinterpret_cast<Address>(kernel)) != __stop_cuda_functions;
}

void end_host_code() {
  if (is_guarded()) siglongjmp(caller, 1);
  std::exit(1);
}

// Device memory is closed while the guest's host code runs, so an access to it ends here.
void on_closed_memory(int signal, siginfo_t* what, void*) {
  const auto address = reinterpret_cast<Address>(what->si_addr);
  if (is_guarded() && in_device_arena(address) && current == nullptr) {
    const Region* region = find_global(address);
    finding("host access", 0, 0,
            "host code reads or writes device memory" +
                (region == nullptr ? std::string() : ": " + region->name));
    end_host_code();
  }
  ::signal(signal, SIG_DFL);  // the access is repeated, and the signal ends the program
}

void watch_closed_memory() {
  static const bool watched = [] {
    struct sigaction action {};
    action.sa_sigaction = on_closed_memory;
    action.sa_flags = SA_SIGINFO;
    return sigaction(SIGSEGV, &action, nullptr) == 0;
  }();
  static_cast<void>(watched);
}

// Called when a guest has ended, by a return, an exception or end_host_code.
void end_guest() {
  stack_end = 0;
  open_device_memory(true);
}

// Not inlined, so that its frame lies below that of its caller, which the guest may not write.
__attribute__((noinline)) static void call_below(const std::function<void()>& call) {
  stack_end = reinterpret_cast<Address>(__builtin_frame_address(0));
  open_device_memory(false);
  call();
}

bool call_guest(const std::function<void()>& call) {
  forget_frames();
  watch_closed_memory();
  if (sigsetjmp(caller, 1) != 0) {
    end_guest();
    return false;
  }
  try {
    call_below(call);
  } catch (...) {
    end_guest();
    throw;
  }
  end_guest();
  return true;
}

DeviceArray::DeviceArray(const std::string& name, std::size_t size) {
  data_ = static_cast<float*>(allocate(size * sizeof(float), false, 0));
  if (data_ == nullptr) throw std::bad_alloc();
  find_global(reinterpret_cast<Address>(data_))->name = name;
}

DeviceArray::DeviceArray(const std::string& name, std::span<const float> values)
    : DeviceArray(name, values.size()) {
  std::memcpy(data_, values.data(), values.size_bytes());
  const auto begin = reinterpret_cast<Address>(data_);
  set_written(*find_global(begin), begin, values.size_bytes());
}

DeviceArray::~DeviceArray() { release(data_); }

void DeviceArray::read(std::span<float> values, float unwritten) const {
  const Region& region = *find_global(reinterpret_cast<Address>(data_));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto address = reinterpret_cast<Address>(data_ + i);
    values[i] = all_written(region, address, sizeof(float)) ? data_[i] : unwritten;
  }
}

std::string take_report() {
  const std::string text = take_kept_report();
  std::string resolved;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = 0;
    if (text[at] == '@' && (end = text.find('@', at + 1)) != std::string::npos) {
      // Plus 1: a report names the last byte of the call (report.cpp), the table the byte after it.
      resolved += line_of(std::strtoull(text.c_str() + at + 1, nullptr, 16) + 1);
      at = end + 1;
    } else {
      resolved += text[at++];
    }
  }
  return resolved;
}

}  // namespace cuda_emulator
