// This gives away stage 7: it is our answer to stages/07-generation/generate.cpp.
#include "generation/generate.h"

#include <algorithm>

#include "base/error.h"
#include "generation/repeat_penalty.h"

namespace stagecraft {

StopReason generate(Session& session, const GenerationOptions& options, Random& random,
                    const std::function<bool(TokenId)>& on_token) {
  if (session.tokens().empty()) throw Error("generate: expected a prompt, found none");
  std::vector<TokenProbability> scratch(session.logits().size());
  for (std::size_t made = 0; made < options.max_tokens; ++made) {
    const auto tokens = session.tokens();
    const auto recent = tokens.last(std::min(tokens.size(), options.repeat_last_n));
    penalize_repeats(session.logits(), recent, options.repeat_penalty);
    const TokenId token = sample(session.logits(), options.sampler, random.uniform(), scratch);
    if (std::find(options.end_tokens.begin(), options.end_tokens.end(), token) !=
        options.end_tokens.end()) {
      return StopReason::EndToken;
    }
    if (!on_token(token)) return StopReason::Stopped;
    if (made + 1 == options.max_tokens) break;  // the logits after it are not needed
    if (tokens.size() == session.context()) return StopReason::ContextFull;
    session.feed({&token, 1});
  }
  return StopReason::MaxTokens;
}

}  // namespace stagecraft
