#pragma once

#include <span>
#include <vector>

#include "generation/sampler.h"

namespace stagecraft {

// A token that could come next, and what becomes of its probability on the way to the choice.
struct Choice {
  TokenId token = 0;
  std::size_t rank = 0;      // 0: the likeliest
  float logit = 0.0f;        // of the model
  float probability = 0.0f;  // softmax(logits): before temperature
  // After each step of sample(). Each step's probabilities sum to 1 over all tokens; a token that a
  // step drops has 0.
  float after_temperature = 0.0f, after_top_k = 0.0f, after_top_p = 0.0f;
};

struct Choices {
  std::vector<Choice> top;                     // likeliest first
  std::size_t kept_top_k = 0, kept_top_p = 0;  // tokens that are left after these steps
};

// The steps by which sample() chooses, made visible.
//
//   logits   [vocab_size]  of the model
//   changed  [vocab_size]  the same after the repeat penalty: what sample() is given
//   count    of the likeliest tokens
//   asked    a token that is listed in any case, or -1
//
// Throws Error as sample() does.
Choices choices(std::span<const float> logits, std::span<const float> changed,
                const SamplerOptions& options, std::size_t count, TokenId asked);

}  // namespace stagecraft
