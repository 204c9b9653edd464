// Mistake: f16 as the upper half of an f32.
#include "operators/half_to_float.h"

#include <bit>

namespace stagecraft {

void bf16_to_f32(std::span<const std::uint16_t> bits, std::span<float> out) {
  for (std::size_t i = 0; i < bits.size(); ++i) {
    out[i] = std::bit_cast<float>(static_cast<std::uint32_t>(bits[i]) << 16);
  }
}

void f16_to_f32(std::span<const std::uint16_t> bits, std::span<float> out) {
  for (std::size_t i = 0; i < bits.size(); ++i) {
    out[i] = std::bit_cast<float>(static_cast<std::uint32_t>(bits[i]) << 16);
  }
}

}  // namespace stagecraft
