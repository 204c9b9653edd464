// Mistake: repeats are not penalized.
#include "generation/generate.h"

#include <algorithm>

namespace stagecraft {

StopReason generate(Session& session, const GenerationOptions& options, Random& random,
                    const std::function<bool(TokenId)>& on_token) {
  std::vector<TokenProbability> scratch(session.logits().size());
  const auto& ends = options.end_tokens;
  for (std::size_t made = 0; made < options.max_tokens; ++made) {
    const TokenId token = sample(session.logits(), options.sampler, random.uniform(), scratch);
    if (std::find(ends.begin(), ends.end(), token) != ends.end()) return StopReason::EndToken;
    if (!on_token(token)) return StopReason::Stopped;
    if (made + 1 == options.max_tokens) break;
    if (session.tokens().size() == session.context()) return StopReason::ContextFull;
    session.feed({&token, 1});
  }
  return StopReason::MaxTokens;
}

}  // namespace stagecraft
