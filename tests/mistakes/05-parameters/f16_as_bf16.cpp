// Mistake: f16 as the upper half of an f32.
#include "operators/widen.h"

#include <bit>

namespace stagecraft {

void widen_bf16(std::span<const std::uint16_t> bits, std::span<float> out) {
  for (std::size_t i = 0; i < bits.size(); ++i) {
    out[i] = std::bit_cast<float>(static_cast<std::uint32_t>(bits[i]) << 16);
  }
}

void widen_f16(std::span<const std::uint16_t> bits, std::span<float> out) {
  for (std::size_t i = 0; i < bits.size(); ++i) {
    out[i] = std::bit_cast<float>(static_cast<std::uint32_t>(bits[i]) << 16);
  }
}

}  // namespace stagecraft
