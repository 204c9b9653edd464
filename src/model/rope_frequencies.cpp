#include "model/rope_frequencies.h"

#include <cmath>
#include <numbers>

namespace stagecraft {
namespace {

float llama3_frequency(float frequency, const RopeConfig& rope) {
  const auto factor = static_cast<float>(rope.factor);
  const float wavelength = 2.0f * std::numbers::pi_v<float> / frequency;
  const double long_from = rope.original_max_seq_len / rope.low_freq_factor;
  const double short_to = rope.original_max_seq_len / rope.high_freq_factor;
  if (wavelength < short_to) return frequency;
  if (wavelength > long_from) return frequency / factor;
  const auto low = static_cast<float>(rope.low_freq_factor);
  const auto high = static_cast<float>(rope.high_freq_factor);
  const float smooth =
      (static_cast<float>(rope.original_max_seq_len) / wavelength - low) / (high - low);
  return (1.0f - smooth) * frequency / factor + smooth * frequency;
}

}  // namespace

std::vector<float> rope_frequencies(const RopeConfig& rope, std::size_t head_dim) {
  std::vector<float> inv_freq(head_dim / 2);
  for (std::size_t i = 0; i < inv_freq.size(); ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(head_dim);
    float frequency = 1.0f / std::pow(static_cast<float>(rope.theta), exponent);
    if (rope.type == RopeConfig::Type::Linear) frequency /= static_cast<float>(rope.factor);
    if (rope.type == RopeConfig::Type::Llama3) frequency = llama3_frequency(frequency, rope);
    if (!rope.factors.empty()) frequency /= rope.factors[i];
    inv_freq[i] = frequency;
  }
  return inv_freq;
}

}  // namespace stagecraft
