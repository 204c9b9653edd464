#include "generation/sampler.h"

#include "base/not_implemented.h"

namespace stagecraft {
namespace {

// Helpers of your own go here: nobody else can see them.

}  // namespace

// 7.2. The contract is in src/generation/sampler.h.
TokenId sample([[maybe_unused]] std::span<const float> logits,
               [[maybe_unused]] const SamplerOptions& options, [[maybe_unused]] float u,
               [[maybe_unused]] std::span<TokenProbability> scratch) {
  // 1. the largest logit; one that is NaN or +infinity is an Error (base/error.h): a broken model
  //    must not talk on. Temperature 0: that token; of equal ones the lower id
  // 2. scratch: every token with exp((logit - largest) / temperature)
  // 3. sort it, likeliest first; of equal ones the lower id first
  // 4. top-k (where it is not 0): keep the first k
  // 5. top-p (where it is below 1): of those, keep the first that together reach p of their sum
  // 6. walk through what is kept until the running sum passes u times the sum of all that is kept
  NOT_IMPLEMENTED("stage 7.2: sample");
}

}  // namespace stagecraft
