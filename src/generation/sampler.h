#pragma once

#include <cstddef>
#include <span>

#include "base/token.h"

namespace stagecraft {

struct SamplerOptions {
  float temperature = 1.0f;  // 0: always the likeliest token ("greedy")
  std::size_t top_k = 0;     // keep only the k likeliest tokens; 0, or more than there are: all
  float top_p = 1.0f;        // keep the likeliest tokens until their probabilities reach p; 0: keep
                             // only the likeliest
};

struct TokenProbability {
  TokenId token = 0;
  float probability = 0.0f;
};

// Chooses the next token:
//   1. softmax(logits / temperature)
//   2. top-k: keep the k likeliest
//   3. top-p (Holtzman et al. 2019): scale the probabilities of the kept tokens so that they sum to
//      1 again; add them up, the likeliest first, until the sum reaches p; keep the added tokens
//   4. scale the probabilities of the kept tokens so that they sum to 1; lay them side by side in
//      [0, 1), the likeliest first, and choose the token whose interval holds u. If rounding leaves
//      u beyond the last interval, choose the last kept token
// If tokens are equally likely, the one with the lower id counts as likelier.
//
//   logits   [vocab_size]  read; at least one
//   u        a random number, uniform in [0, 1)
//   scratch  [vocab_size]  written: memory to work in, so that no call allocates (not graded)
//
// With temperature 0, returns the token of the largest logit; top_k, top_p and u do not matter.
// Throws Error if a logit is NaN or +infinity, or if all are -infinity. May be called from several
// threads at once.
TokenId sample(std::span<const float> logits, const SamplerOptions& options, float u,
               std::span<TokenProbability> scratch);

}  // namespace stagecraft
