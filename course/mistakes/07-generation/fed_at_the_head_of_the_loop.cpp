// Right: a token is fed when the next one is wanted.
#include "generation/generate.h"

#include <algorithm>

#include "generation/repeat_penalty.h"

namespace stagecraft {

StopReason generate(Session& session, const GenerationOptions& options, Random& random,
                    const std::function<bool(TokenId)>& on_token) {
  std::vector<TokenProbability> scratch(session.logits().size());
  const auto& ends = options.end_tokens;
  TokenId token = -1;
  std::size_t made = 0;
  while (made < options.max_tokens) {
    if (made++ > 0) {
      if (session.tokens().size() == session.context()) return StopReason::ContextFull;
      session.feed({&token, 1});
    }
    const auto history = session.tokens();
    const auto recent = history.last(std::min(history.size(), options.repeat_last_n));
    penalize_repeats(session.logits(), recent, options.repeat_penalty);
    token = sample(session.logits(), options.sampler, random.uniform(), scratch);
    if (std::find(ends.begin(), ends.end(), token) != ends.end()) return StopReason::EndToken;
    if (!on_token(token)) return StopReason::Stopped;
  }
  return StopReason::MaxTokens;
}

}  // namespace stagecraft
