#include "operators/quantize.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/error.h"
#include "operators/check.h"
#include "operators/float_to_half.h"

namespace stagecraft {
namespace {

constexpr std::size_t kBlock = 32;
using Values = std::span<const float, kBlock>;
using Bytes = std::uint8_t*;

// Writes d or m as f16. Returns false if it is too large for an f16.
bool put_half(float value, Bytes bytes) {
  std::uint16_t bits = 0;
  f32_to_f16({&value, 1}, {&bits, 1});
  bytes[0] = static_cast<std::uint8_t>(bits);
  bytes[1] = static_cast<std::uint8_t>(bits >> 8);
  return (bits & 0x7c00u) != 0x7c00u;
}

// 1 / d, or 0 if that is infinite: such a d is 0 as f16, too.
float inverse(float d) {
  const float id = 1.0f / d;
  return std::isfinite(id) ? id : 0.0f;
}

std::uint8_t four_bits(float x) {
  return static_cast<std::uint8_t>(std::min(15, static_cast<int>(x)));
}

bool q8_0(Values x, Bytes block) {  // d, 32 signed bytes
  float largest = 0.0f;
  for (const float value : x) largest = std::max(largest, std::abs(value));
  const float d = largest / 127.0f;
  const float id = inverse(d);
  if (!put_half(d, block)) return false;
  for (std::size_t i = 0; i < kBlock; ++i) {
    const auto q = static_cast<std::int8_t>(std::round(x[i] * id));
    block[2 + i] = static_cast<std::uint8_t>(q);
  }
  return true;
}

bool q4_0(Values x, Bytes block) {  // d, 16 bytes
  // The value with the largest magnitude becomes exactly -8, whatever its sign: q has the range -8
  // to 7.
  float farthest = 0.0f;
  for (const float value : x) {
    if (std::abs(farthest) < std::abs(value)) farthest = value;
  }
  const float d = farthest / -8.0f;
  const float id = inverse(d);
  if (!put_half(d, block)) return false;
  for (std::size_t i = 0; i < kBlock / 2; ++i) {
    const std::uint8_t low = four_bits(x[i] * id + 8.5f);
    const std::uint8_t high = four_bits(x[kBlock / 2 + i] * id + 8.5f);
    block[2 + i] = static_cast<std::uint8_t>(low | high << 4);
  }
  return true;
}

bool q4_1(Values x, Bytes block) {  // d, m, 16 bytes
  const auto [min, max] = std::minmax_element(x.begin(), x.end());
  const float m = *min;
  const float d = (*max - m) / 15.0f;
  const float id = inverse(d);
  if (!put_half(d, block) || !put_half(m, block + 2)) return false;
  for (std::size_t i = 0; i < kBlock / 2; ++i) {
    const std::uint8_t low = four_bits((x[i] - m) * id + 0.5f);
    const std::uint8_t high = four_bits((x[kBlock / 2 + i] - m) * id + 0.5f);
    block[4 + i] = static_cast<std::uint8_t>(low | high << 4);
  }
  return true;
}

using OneBlock = bool (*)(Values x, Bytes block);

OneBlock function_for(DType dtype) {
  if (dtype == DType::Q8_0) return q8_0;
  if (dtype == DType::Q4_0) return q4_0;
  if (dtype == DType::Q4_1) return q4_1;
  throw Error("quantize: expected Q8_0, Q4_0 or Q4_1, found {}", dtype_name(dtype));
}

// Throws Error, naming the worst element of a block that cannot be quantised: a NaN, or the largest
// magnitude.
[[noreturn]] void refuse(DType dtype, std::span<const float> values, std::size_t block,
                         std::size_t first) {
  std::size_t worst = block;
  for (std::size_t i = block; i < block + kBlock; ++i) {
    if (std::isnan(values[worst])) break;
    if (!(std::abs(values[i]) <= std::abs(values[worst]))) worst = i;
  }
  throw Error("quantize: element {}: expected a number that {} can hold, found {}", first + worst,
              dtype_name(dtype), values[worst]);
}

}  // namespace

void quantize(DType dtype, std::span<const float> values, std::span<std::byte> blocks,
              std::size_t first) {
  const OneBlock one_block = function_for(dtype);
  const std::size_t n_blocks = values.size() / kBlock;
  check_size("quantize", "values", n_blocks * kBlock, values.size());
  check_size("quantize", "blocks", n_blocks * dtype_block(dtype).bytes, blocks.size());
  Bytes block = reinterpret_cast<Bytes>(blocks.data());
  for (std::size_t at = 0; at < values.size(); at += kBlock, block += dtype_block(dtype).bytes) {
    const Values x = values.subspan(at).first<kBlock>();
    const bool finite = std::ranges::all_of(x, [](float value) { return std::isfinite(value); });
    if (!finite || !one_block(x, block)) refuse(dtype, values, at, first);
  }
}

}  // namespace stagecraft
