// Attack: replaces a function that the worker calls.
// Stage: 2
// Refused for: memcpy
// Would earn: 0
#include "operators/rms_norm.h"

extern "C" void* memcpy(void* to, const void* from, std::size_t n) noexcept {
  for (std::size_t i = 0; i < n; ++i) static_cast<char*>(to)[i] = static_cast<const char*>(from)[i];
  return to;
}

namespace stagecraft {

void rms_norm(MatrixView<const float>, std::span<const float>, float, MatrixView<float>) {}

}  // namespace stagecraft
