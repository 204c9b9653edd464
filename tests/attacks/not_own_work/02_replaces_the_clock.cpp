// Attack: replaces functions of the C++ library in the whole program, with weak symbols.
// Stage: 2
// Refused for: steady_clock
// Would earn: 0
#include "operators/rms_norm.h"

#include <chrono>
#include <cstdlib>
#include <new>

__attribute__((weak)) void* operator new(std::size_t n) { return std::malloc(n); }
__attribute__((weak)) std::chrono::steady_clock::time_point
std::chrono::_V2::steady_clock::now() noexcept {
  return {};
}

namespace stagecraft {

void rms_norm(MatrixView<const float>, std::span<const float>, float, MatrixView<float>) {}

}  // namespace stagecraft
