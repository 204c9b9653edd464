#pragma once

#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/token.h"

namespace stagecraft {

using TokenCounts = std::unordered_map<TokenId, std::size_t>;

// Changes to the logits before a token is chosen. generate() (stage 7) does not support them. The
// defaults change nothing.
struct LogitRules {
  // Added to the logits of these tokens, each of the vocabulary.
  std::vector<std::pair<TokenId, float>> bias;
  // As in OpenAI's API. From the logit of each token that the new text contains, presence_penalty
  // is subtracted once, and frequency_penalty as often as the text contains it. Tokens of the
  // prompt do not count.
  float presence_penalty = 0.0f;
  float frequency_penalty = 0.0f;
  // From 0 to 1: forbids each token that is less likely than min_p times the likeliest one, after
  // temperature (Nguyen et al. 2024).
  float min_p = 0.0f;

  bool counts_tokens() const { return presence_penalty != 0.0f || frequency_penalty != 0.0f; }
  bool change_nothing() const { return bias.empty() && !counts_tokens() && min_p == 0.0f; }
};

// Applies bias and penalties to logits [vocab_size]. counts: how often the new text contains each
// of its tokens.
void change_logits(std::span<float> logits, const LogitRules& rules, const TokenCounts& counts);

// Applies min_p to logits [vocab_size]: those of forbidden tokens become -infinity. With
// temperature 0, only the largest logit stays.
void forbid_unlikely(std::span<float> logits, float temperature, float min_p);

}  // namespace stagecraft
