#pragma once

#include <cstddef>

#include "generation/sampler.h"

namespace stagecraft {

// What the commands, the server and the Python package accept; both ends are included.
// kMostTokens: for the number of new tokens, top-k, and the length of a context. Larger numbers are
// typing mistakes.
struct NumberRange {
  double min, max;
};
inline constexpr NumberRange kTemperatures = {0, 100};
inline constexpr NumberRange kTopPs = {0, 1};
inline constexpr NumberRange kMinPs = {0, 1};
inline constexpr NumberRange kRepeatPenalties = {0.01, 100};
inline constexpr std::size_t kMostTokens = 10'000'000;
inline constexpr std::size_t kMostThreads = 256;

// The defaults of the commands and of the Python package.
inline constexpr SamplerOptions kDefaultSampler = {
    .temperature = 0.8f, .top_k = 40, .top_p = 0.95f};

}  // namespace stagecraft
