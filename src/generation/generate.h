#pragma once

#include <functional>

#include "generation/random.h"
#include "generation/sampler.h"
#include "generation/session.h"

namespace stagecraft {

struct GenerationOptions {
  std::size_t max_tokens = 256;  // the most new tokens
  SamplerOptions sampler;
  float repeat_penalty = 1.0f;      // see penalize_repeats
  std::size_t repeat_last_n = 64;   // the penalty applies to this number of last tokens
  std::vector<TokenId> end_tokens;  // each of these ends the text and is not given to on_token
};

enum class StopReason {
  EndToken,     // the model chose an end token (or a grammar is complete)
  MaxTokens,    // max_tokens new tokens were made
  ContextFull,  // fewer were made, and there is no room for another one
  Stopped,      // on_token returned false
};

// The decoding loop: choose a token from the logits, give it to on_token, feed it; repeat.
//
//   session   before: fed with the whole prompt (at least one token), so its logits are up to date.
//             Afterwards it also holds the new tokens that were fed. The last token is fed only if
//             another one is to be chosen
//   random    gives one number per token
//   on_token  called with each new token as soon as it is chosen; false stops
StopReason generate(Session& session, const GenerationOptions& options, Random& random,
                    const std::function<bool(TokenId)>& on_token);

}  // namespace stagecraft
