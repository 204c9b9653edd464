#include "generation/chat_turn.h"

#include "base/error.h"
#include "base/not_implemented.h"

namespace stagecraft {
namespace {

// Helpers of your own go here: nobody else can see them.

}  // namespace

// 8.2. The contract is in src/generation/chat_turn.h. What you need is there already:
//   session.tokens()          what the cache holds (src/generation/session.h)
//   session.truncate(length)  forgets everything from there on
//   generate_text(...)        feeds the session with more tokens, then lets the model speak
//                             (src/generation/generate_text.h)
TextResult chat_turn([[maybe_unused]] const Tokenizer& tokenizer, [[maybe_unused]] Session& session,
                     [[maybe_unused]] std::span<const TokenId> conversation,
                     [[maybe_unused]] const TextOptions& options, [[maybe_unused]] Random& random,
                     [[maybe_unused]] const std::function<bool(std::string_view)>& on_text) {
  // 1. a conversation that is empty, or longer than session.context(), is an Error: check before
  //    you touch the session
  // 2. how many tokens do the cache and the conversation begin with in common?
  // 3. of these, keep at most all but the conversation's last: its scores are what the answer
  //    begins with, and the session may hold those of another token
  // 4. forget the rest of the cache
  // 5. hand the rest of the conversation to generate_text
  NOT_IMPLEMENTED("stage 8.2: chat_turn");
}

}  // namespace stagecraft
