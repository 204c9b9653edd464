#include "generation/repeat_penalty.h"

#include <algorithm>

namespace stagecraft {

void penalize_repeats(std::span<float> logits, std::span<const TokenId> recent, float penalty) {
  if (penalty == 1.0f) return;
  for (std::size_t i = 0; i < recent.size(); ++i) {
    const TokenId token = recent[i];
    if (token < 0 || static_cast<std::size_t>(token) >= logits.size()) continue;
    const auto before = recent.first(i);
    if (std::find(before.begin(), before.end(), token) != before.end()) continue;
    float& logit = logits[static_cast<std::size_t>(token)];
    logit = logit > 0.0f ? logit / penalty : logit * penalty;
  }
}

}  // namespace stagecraft
