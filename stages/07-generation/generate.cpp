#include "generation/generate.h"

#include "base/not_implemented.h"
#include "generation/repeat_penalty.h"

namespace stagecraft {

// 7.3. The contract is in src/generation/generate.h.
StopReason generate([[maybe_unused]] Session& session,
                    [[maybe_unused]] const GenerationOptions& options,
                    [[maybe_unused]] Random& random,
                    [[maybe_unused]] const std::function<bool(TokenId)>& on_token) {
  // Make the scratch for sample once. Then, at most options.max_tokens times:
  // 1. penalize_repeats in session.logits(), for the last options.repeat_last_n of
  //    session.tokens()
  // 2. sample, with random.uniform(): exactly one number a token
  // 3. is it one of options.end_tokens? then that is the end, and nobody is shown it
  // 4. on_token(token): false means stop
  // 5. if another token will be wanted: is there room in session.context()? then feed it
  NOT_IMPLEMENTED("stage 7.3: generate");
}

}  // namespace stagecraft
