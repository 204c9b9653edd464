#include "generation/logit_rules.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace stagecraft {

void change_logits(std::span<float> logits, const LogitRules& rules, const TokenCounts& counts) {
  for (const auto& [token, value] : rules.bias) logits[static_cast<std::size_t>(token)] += value;
  if (!rules.counts_tokens()) return;
  for (const auto& [token, count] : counts) {
    logits[static_cast<std::size_t>(token)] -=
        rules.presence_penalty + rules.frequency_penalty * static_cast<float>(count);
  }
}

// exp(a / T) < p * exp(b / T) is the same as a < b + T * log(p).
void forbid_unlikely(std::span<float> logits, float temperature, float min_p) {
  if (min_p == 0.0f || logits.empty()) return;
  const float least = *std::ranges::max_element(logits) + temperature * std::log(min_p);
  for (float& logit : logits) {
    if (logit < least) logit = -std::numeric_limits<float>::infinity();
  }
}

}  // namespace stagecraft
