#pragma once

#include <cstring>
#include <span>

namespace stagecraft {

// Compares bits: unlike with ==, a NaN can equal a NaN, and 0 differs from -0.
inline bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

}  // namespace stagecraft
