// Right: all scales in a table; the largest found by the standard library.
#include "operators/q8_0.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "operators/float_to_half.h"
#include "operators/half_to_float.h"

namespace stagecraft {
namespace {

constexpr std::size_t kBlock = BlockQ8_0::kSize;

float value_of(std::uint16_t bits) {
  float value = 0.0f;
  f16_to_f32({&bits, 1}, {&value, 1});
  return value;
}

}  // namespace

void quantize_q8_0(std::span<const float> x, std::span<BlockQ8_0> blocks) {
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const auto values = x.subspan(i * kBlock, kBlock);
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    const float largest = std::max(std::fabs(*low), std::fabs(*high));
    const float d = largest / 127.0f;
    f32_to_f16({&d, 1}, {&blocks[i].scale, 1});
    const float inverse = d == 0.0f ? 0.0f : 1.0f / d;
    for (std::size_t j = 0; j < kBlock; ++j) {
      blocks[i].q[j] = static_cast<std::int8_t>(std::round(x[i * kBlock + j] * inverse));
    }
  }
}

void dequantize_q8_0(std::span<const BlockQ8_0> blocks, std::span<float> x) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    const BlockQ8_0& block = blocks[i / kBlock];
    x[i] = value_of(block.scale) * static_cast<float>(block.q[i % kBlock]);
  }
}

static const std::vector<float>& table() {
  static const std::vector<float> all = [] {
    std::vector<float> values;
    for (unsigned bits = 0; bits < 65536; ++bits) {
      values.push_back(value_of(static_cast<std::uint16_t>(bits)));
    }
    return values;
  }();
  return all;
}

float dot_q8_0(std::span<const BlockQ8_0> a, std::span<const BlockQ8_0> b) {
  float sum = 0.0f;
  for (std::size_t i = 0; i < a.size(); ++i) {
    int whole = 0;
    for (std::size_t j = 0; j < kBlock; ++j) whole += a[i].q[j] * b[i].q[j];
    sum += table()[a[i].scale] * table()[b[i].scale] * static_cast<float>(whole);
  }
  return sum;
}

}  // namespace stagecraft
