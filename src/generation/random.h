#pragma once

#include <cstdint>
#include <random>

namespace stagecraft {

// Uniform numbers in [0, 1), the same on every machine for the same seed. The C++ standard defines
// the results of the engine, but not those of the distributions of <random>; so the conversion to
// [0, 1) is our own.
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  float uniform() { return static_cast<float>(engine_() >> 40) * 0x1p-24f; }

 private:
  std::mt19937_64 engine_;
};

}  // namespace stagecraft
