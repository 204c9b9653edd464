#include "model/rope_frequencies.h"

#include <cmath>
#include <numbers>

namespace stagecraft {
namespace {

double llama3_frequency(double frequency, const RopeConfig& rope) {
  const double wavelength = 2.0 * std::numbers::pi / frequency;
  const double long_from = rope.original_max_seq_len / rope.low_freq_factor;
  const double short_to = rope.original_max_seq_len / rope.high_freq_factor;
  if (wavelength < short_to) return frequency;
  if (wavelength > long_from) return frequency / rope.factor;
  const double smooth = (rope.original_max_seq_len / wavelength - rope.low_freq_factor) /
                        (rope.high_freq_factor - rope.low_freq_factor);
  return (1.0 - smooth) * frequency / rope.factor + smooth * frequency;
}

}  // namespace

std::vector<float> rope_frequencies(const RopeConfig& rope, std::size_t head_dim) {
  std::vector<float> inv_freq(head_dim / 2);
  for (std::size_t i = 0; i < inv_freq.size(); ++i) {
    const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(head_dim);
    double frequency = std::pow(rope.theta, exponent);
    if (rope.type == RopeConfig::Type::Linear) frequency /= rope.factor;
    if (rope.type == RopeConfig::Type::Llama3) frequency = llama3_frequency(frequency, rope);
    inv_freq[i] = static_cast<float>(frequency);
  }
  return inv_freq;
}

}  // namespace stagecraft
