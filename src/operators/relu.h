#pragma once

#include <span>

namespace stagecraft {

// ReLU (Nair and Hinton 2010): relu(x) = x if x > 0, else 0; NaN stays NaN.
//   x  [n]  read; n may be 0
//   y  [n]  written; may be x itself, else must not overlap it
//
// Throws Error if sizes disagree.
void relu(std::span<const float> x, std::span<float> y);

}  // namespace stagecraft
