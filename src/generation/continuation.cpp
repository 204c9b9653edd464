#include "generation/continuation.h"

#include <algorithm>

#include "generation/repeat_penalty.h"

namespace stagecraft {

Continuation::Step Continuation::next(std::span<float> logits,
                                      std::span<TokenProbability> scratch) {
  if (made().size() == options_.max_tokens) return {{}, StopReason::MaxTokens};
  const auto recent = tokens().last(std::min(tokens_.size(), options_.repeat_last_n));
  penalize_repeats(logits, recent, options_.repeat_penalty);
  const TokenId token = sample(logits, options_.sampler, random_.uniform(), scratch);
  if (std::ranges::find(options_.end_tokens, token) != options_.end_tokens.end()) {
    return {{}, StopReason::EndToken};
  }
  tokens_.push_back(token);
  if (made().size() == options_.max_tokens) return {token, StopReason::MaxTokens};
  if (tokens_.size() > context_) return {token, StopReason::ContextFull};
  return {token, {}};
}

}  // namespace stagecraft
