#pragma once

#include <span>

namespace stagecraft {

// y[i] = 1 / (1 + exp(-x[i]))
//
//   x  [n]  read
//   y  [n]  written; may be x itself, else must not overlap it
//
// Throws Error if sizes disagree. May be called from several threads at once.
void sigmoid(std::span<const float> x, std::span<float> y);

}  // namespace stagecraft
