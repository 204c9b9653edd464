#pragma once

#include <span>
#include <vector>

#include "generation/sampler.h"

namespace stagecraft {

// A token that could come next, and its probability after each step of sampling.
struct Choice {
  TokenId token = 0;
  std::size_t rank = 0;      // 0: the most likely token
  float logit = 0.0f;        // of the model
  float probability = 0.0f;  // softmax(logits), before temperature
  // After each step of sample(). After each step, the probabilities of all tokens sum to 1. A token
  // that a step removes has the probability 0.
  float after_temperature = 0.0f, after_top_k = 0.0f, after_top_p = 0.0f;
};

struct Choices {
  std::vector<Choice> top;                     // most likely first
  std::size_t kept_top_k = 0, kept_top_p = 0;  // how many tokens are left after these steps
};

// Computes the steps of sample() for the most likely tokens. The rules of sample() are repeated
// here, because a student may write sample(): the test
// Choices.AreTheProbabilitiesWithWhichSampleChooses compares the two.
//
//   logits   [vocab_size]  of the model
//   changed  [vocab_size]  the same after the repeat penalty and min_p: the input of sample()
//   count    how many of the most likely tokens are listed
//   asked    a token that is always listed, or -1
//
// Throws Error as sample() does.
Choices choices(std::span<const float> logits, std::span<const float> changed,
                const SamplerOptions& options, std::size_t count, TokenId asked);

}  // namespace stagecraft
