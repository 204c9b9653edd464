// The stack frames of the functions that are running. The compiler calls __tsan_func_entry after a
// function's prologue. The frame pointer then points to the saved frame pointer of the caller; the
// return address follows it. (The program is compiled without optimisation, so each function has a
// frame.) A write there could make the program continue in code that is not checked.
#include <algorithm>

#include "machine.h"

namespace cuda_emulator {

namespace {

constexpr std::size_t kept_bytes = 2 * sizeof(Address);

std::vector<Address>& frames() {
  static auto* of_host = new std::vector<Address>;
  return current != nullptr ? current->frames : *of_host;
}

}  // namespace

bool frames_allow_write(Address address, std::size_t bytes) {
  const auto& all = frames();
  // Stacks grow down: most writes are to a local variable of the innermost function.
  if (all.empty() || address + bytes <= all.back()) return true;
#ifdef __x86_64__  // here, these two addresses are at the end of a frame
  if (address + bytes > all.front()) return false;
#endif
  return std::none_of(all.begin(), all.end(), [=](Address kept) {
    return address < kept + kept_bytes && address + bytes > kept;
  });
}

void forget_frames() { frames().clear(); }

}  // namespace cuda_emulator

extern "C" void __tsan_func_entry(void* caller) {
  using namespace cuda_emulator;
  const Address kept = *static_cast<Address*>(__builtin_frame_address(0));
  auto& all = frames();
  while (!all.empty() && all.back() <= kept) all.pop_back();  // left by an exception
  all.push_back(kept);
  program_is_checked() = true;
  if (current == nullptr) return;
  current->is_checked = true;
  current->calls.push_back(Address(caller));
}

extern "C" void __tsan_func_exit() {
  using namespace cuda_emulator;
  if (auto& all = frames(); !all.empty()) all.pop_back();
  if (current != nullptr && !current->calls.empty()) current->calls.pop_back();
}
