#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "base/token.h"

namespace stagecraft {

// The number of tokens that two texts have in common at their beginning. (chat_turn.cpp has its
// own: it is the answer of stage 8, in which students write it.)
inline std::size_t common_prefix(std::span<const TokenId> a, std::span<const TokenId> b) {
  return static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

}  // namespace stagecraft
