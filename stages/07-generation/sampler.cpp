#include "generation/sampler.h"

#include "base/error.h"
#include "base/not_implemented.h"

namespace stagecraft {
namespace {

// Write your own helper functions here. They are visible in this file only.

}  // namespace

// 7.2. The contract is in src/generation/sampler.h.
TokenId sample([[maybe_unused]] std::span<const float> logits,
               [[maybe_unused]] const SamplerOptions& options, [[maybe_unused]] float u,
               [[maybe_unused]] std::span<TokenProbability> scratch) {
  NOT_IMPLEMENTED("stage 7.2: sample");
}

}  // namespace stagecraft
