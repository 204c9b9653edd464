#pragma once

#include <cstddef>

namespace stagecraft {

// The smallest multiple of `step` that is not less than n.
constexpr std::size_t round_up(std::size_t n, std::size_t step) {
  return (n + step - 1) / step * step;
}

}  // namespace stagecraft
