#pragma once

#include <cstddef>
#include <span>

#include "base/token.h"

namespace stagecraft {

struct SamplerOptions {
  float temperature = 1.0f;  // 0: always the likeliest token ("greedy")
  std::size_t top_k = 0;     // keep only the k likeliest tokens; 0: all
  float top_p = 1.0f;        // keep the likeliest tokens until their probabilities reach p
};

struct TokenProbability {
  TokenId token = 0;
  float probability = 0.0f;
};

// Chooses the next token:
//   1. softmax(logits / temperature)
//   2. top-k: keep the k likeliest
//   3. top-p (Holtzman et al. 2019): of those, shares made to sum to 1 again, keep the fewest
//      likeliest whose sum reaches p
//   4. lay the shares of what is kept side by side in [0, 1), likeliest first, and take the one
//      that u falls into
// Of equally likely tokens the one with the lower id counts as likelier.
//
//   logits   [vocab_size]  read; at least one
//   u        the one random number, uniform in [0, 1)
//   scratch  [vocab_size]  written; so that nothing is allocated per token
//
// With temperature 0, the largest logit, whatever the rest says. Throws Error if a logit is NaN or
// +infinity, or if all are -infinity. May be called from several threads at once.
TokenId sample(std::span<const float> logits, const SamplerOptions& options, float u,
               std::span<TokenProbability> scratch);

}  // namespace stagecraft
