#include "convert/llama3_rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "model/rope_frequencies.h"

namespace stagecraft {

std::optional<RopeConfig> llama3_rope(const RopeConfig& rope, std::size_t head_dim) {
  constexpr double kRounding = 1e-4;  // relative
  RopeConfig found = rope;
  found.type = RopeConfig::Type::Llama3;
  found.factors.clear();
  // The slowest pairs have the whole factor.
  found.factor = std::round(std::ranges::max(rope.factors));
  RopeConfig plain = found;
  plain.type = RopeConfig::Type::Default;
  const std::vector<float> unscaled = rope_frequencies(plain, head_dim);
  for (std::size_t i = 0; i < unscaled.size(); ++i) {
    // The part of a frequency that is not divided; between 0 and 1, it shows the original context.
    const double whole = 1.0 / found.factor;
    const double kept = (1.0 / rope.factors[i] - whole) / (1.0 - whole);
    if (!(kept > kRounding && kept < 1.0 - kRounding)) continue;
    const double wavelength = 2.0 * std::numbers::pi / unscaled[i];
    found.original_max_seq_len =
        std::round(wavelength * (kept * (found.high_freq_factor - found.low_freq_factor) +
                                 found.low_freq_factor));
    break;
  }
  if (found.factor <= 1.0 || found.original_max_seq_len < 1.0) return std::nullopt;
  const std::vector<float> expected = rope_frequencies(rope, head_dim),
                           frequencies = rope_frequencies(found, head_dim);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (!(std::abs(frequencies[i] - expected[i]) <= kRounding * expected[i])) return std::nullopt;
  }
  return found;
}

}  // namespace stagecraft
