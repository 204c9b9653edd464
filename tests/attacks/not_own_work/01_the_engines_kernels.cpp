// Attack: calls the engine's kernel for SwiGLU in both functions.
// Stage: 1
// Refused for: operators/kernels/kernels.h
// Would earn: 10
#include <vector>

#include "operators/kernels/kernels.h"
#include "operators/silu.h"
#include "operators/swiglu.h"

namespace stagecraft {

void silu(std::span<const float> x, std::span<float> y) {
  const std::vector<float> ones(x.size(), 1.0f);
  kernels().activate[0](x.data(), ones.data(), x.size(), y.data());
}

void swiglu(std::span<const float> gate, std::span<const float> up, std::span<float> y) {
  kernels().activate[0](gate.data(), up.data(), gate.size(), y.data());
}

}  // namespace stagecraft
