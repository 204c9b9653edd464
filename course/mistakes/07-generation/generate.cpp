// mistakes.json holds edits of this program, which is right.
#include "generation/generate.h"

#include <algorithm>

#include "generation/repeat_penalty.h"

namespace stagecraft {

StopReason generate(Session& session, const GenerationOptions& options, Random& random,
                    const std::function<bool(TokenId)>& on_token) {
  std::vector<TokenProbability> scratch(session.logits().size());
  const auto& ends = options.end_tokens;
  for (std::size_t made = 0; made < options.max_tokens; ++made) {
    const auto history = session.tokens();
    const auto recent = history.last(std::min(history.size(), options.repeat_last_n));
    penalize_repeats(session.logits(), recent, options.repeat_penalty);
    const TokenId token = sample(session.logits(), options.sampler, random.uniform(), scratch);
    if (std::ranges::find(ends, token) != ends.end()) return StopReason::EndToken;
    if (!on_token(token)) return StopReason::Stopped;
    if (made + 1 == options.max_tokens) break;
    if (session.tokens().size() == session.context()) return StopReason::ContextFull;
    session.feed({&token, 1});
  }
  return StopReason::MaxTokens;
}

}  // namespace stagecraft
