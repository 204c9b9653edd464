#pragma once

#include <span>

namespace stagecraft {

// Logit soft-capping (Gemma 2, Riviere et al. 2024): x[i] = cap * tanh(x[i] / cap), in place. Small
// numbers hardly change, and every result is in [-cap, cap]. cap must be > 0.
void soft_cap(std::span<float> x, float cap);

}  // namespace stagecraft
