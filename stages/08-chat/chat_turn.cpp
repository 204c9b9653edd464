#include "generation/chat_turn.h"

#include "base/error.h"
#include "base/not_implemented.h"

namespace stagecraft {
namespace {

// Write your own helper functions here. They are visible in this file only.

}  // namespace

// 8.2. The contract is in src/generation/chat_turn.h; the handout lists the given functions.
TextResult chat_turn([[maybe_unused]] const Tokenizer& tokenizer, [[maybe_unused]] Session& session,
                     [[maybe_unused]] std::span<const TokenId> conversation,
                     [[maybe_unused]] const TextOptions& options, [[maybe_unused]] Random& random,
                     [[maybe_unused]] const std::function<bool(std::string_view)>& on_text) {
  NOT_IMPLEMENTED("stage 8.2: chat_turn");
}

}  // namespace stagecraft
