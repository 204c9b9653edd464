#pragma once

#include <cstddef>

namespace stagecraft {

// The least multiple of `step` that n fits into.
constexpr std::size_t round_up(std::size_t n, std::size_t step) {
  return (n + step - 1) / step * step;
}

}  // namespace stagecraft
