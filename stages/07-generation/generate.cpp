#include "generation/generate.h"

#include "base/not_implemented.h"
#include "generation/repeat_penalty.h"

namespace stagecraft {

// 7.3. The contract is in src/generation/generate.h.
StopReason generate([[maybe_unused]] Session& session,
                    [[maybe_unused]] const GenerationOptions& options,
                    [[maybe_unused]] Random& random,
                    [[maybe_unused]] const std::function<bool(TokenId)>& on_token) {
  NOT_IMPLEMENTED("stage 7.3: generate");
}

}  // namespace stagecraft
