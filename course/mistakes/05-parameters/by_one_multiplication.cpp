// Right: the exponent mended by one multiplication.
#include "operators/half_to_float.h"

#include <bit>

namespace stagecraft {

void bf16_to_f32(std::span<const std::uint16_t> bits, std::span<float> out) {
  for (float& value : out) {
    const std::uint32_t word = bits[static_cast<std::size_t>(&value - out.data())];
    value = std::bit_cast<float>(word * 65536);
  }
}

// All bits but the sign go where f32 has them; then one multiplication mends the exponent, of
// subnormal numbers too. What was infinite or NaN is put back.
void f16_to_f32(std::span<const std::uint16_t> bits, std::span<float> out) {
  for (std::size_t i = 0; i < bits.size(); ++i) {
    const std::uint32_t magnitude = static_cast<std::uint32_t>(bits[i] & 0x7fff) << 13;
    const float moved = std::bit_cast<float>(magnitude) * 0x1p112f;
    std::uint32_t word = std::bit_cast<std::uint32_t>(moved);
    if ((bits[i] & 0x7c00) == 0x7c00) word |= 0x7f800000;
    out[i] = std::bit_cast<float>(word | static_cast<std::uint32_t>(bits[i] & 0x8000) << 16);
  }
}

}  // namespace stagecraft
