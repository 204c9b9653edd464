#pragma once

#include <cstdint>

#include "generation/random.h"

namespace stagecraft::stages {

// How many numbers were taken from a Random of this seed; -1 if more than a thousand. Takes two
// more.
inline int numbers_taken(Random& random, std::uint64_t seed) {
  const float next = random.uniform();
  const float after_next = random.uniform();
  Random again(seed);
  float first = again.uniform();
  for (int n = 0; n <= 1000; ++n) {
    const float second = again.uniform();
    if (first == next && second == after_next) return n;
    first = second;
  }
  return -1;
}

}  // namespace stagecraft::stages
