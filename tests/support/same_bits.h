#pragma once

#include <cstring>
#include <span>

namespace stagecraft {

// Unlike ==, also of NaN, and 0 is not -0.
inline bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

}  // namespace stagecraft
