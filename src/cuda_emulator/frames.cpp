// The frames of the functions that run. The compiler calls __tsan_func_entry behind a function's
// prologue; then the frame pointer says where the function keeps its caller's frame pointer and,
// behind it, its return address. (The program is compiled without optimisation, so each function
// has a frame.) A write there would send the program to where no check is.
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
#ifdef __x86_64__  // where a frame ends with what it keeps
  if (!all.empty() && address + bytes > all.front()) return false;
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
  if (current != nullptr) current->calls.push_back(Address(caller));
}

extern "C" void __tsan_func_exit() {
  using namespace cuda_emulator;
  if (auto& all = frames(); !all.empty()) all.pop_back();
  if (current != nullptr && !current->calls.empty()) current->calls.pop_back();
}
