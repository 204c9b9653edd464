#include "model/rope_frequencies.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>

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

// For each pair: the fraction of its frequency that is kept; the rest is divided by the factor.
class YarnBlend {
 public:
  YarnBlend(const RopeConfig& rope, std::size_t head_dim) {
    const auto pair_that_turns = [&](double times) {
      return static_cast<double>(head_dim) *
             std::log(rope.original_max_seq_len / (times * 2.0 * std::numbers::pi)) /
             (2.0 * std::log(rope.theta));
    };
    const double fast = pair_that_turns(rope.beta_fast), slow = pair_that_turns(rope.beta_slow);
    low_ = std::max(rope.truncate ? std::floor(fast) : fast, 0.0);
    high_ = std::min(rope.truncate ? std::ceil(slow) : slow, static_cast<double>(head_dim - 1));
    if (low_ == high_) high_ += 0.001;
  }
  float kept(std::size_t pair) const {
    const float ramp =
        (static_cast<float>(pair) - static_cast<float>(low_)) / static_cast<float>(high_ - low_);
    return 1.0f - std::clamp(ramp, 0.0f, 1.0f);
  }

 private:
  double low_ = 0.0, high_ = 0.0;  // pairs; between them the fraction falls from 1 to 0
};

}  // namespace

std::vector<float> rope_frequencies(const RopeConfig& rope, std::size_t head_dim) {
  std::vector<float> inv_freq(head_dim / 2);
  std::optional<YarnBlend> yarn;
  if (rope.type == RopeConfig::Type::Yarn) yarn.emplace(rope, head_dim);
  for (std::size_t i = 0; i < inv_freq.size(); ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(head_dim);
    const float slowness = std::pow(static_cast<float>(rope.theta), exponent);
    float frequency = 1.0f / slowness;
    if (rope.type == RopeConfig::Type::Linear) frequency /= static_cast<float>(rope.factor);
    if (rope.type == RopeConfig::Type::Llama3) frequency = llama3_frequency(frequency, rope);
    if (yarn) {
      const float kept = yarn->kept(i);
      const float slowed = 1.0f / (static_cast<float>(rope.factor) * slowness);
      frequency = slowed * (1.0f - kept) + frequency * kept;
    }
    if (!rope.factors.empty()) frequency /= rope.factors[i];
    inv_freq[i] = frequency;
  }
  return inv_freq;
}

}  // namespace stagecraft
