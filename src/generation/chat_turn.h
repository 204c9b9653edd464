#pragma once

#include "generation/generate_text.h"

namespace stagecraft {

// One turn of a chat over a kept cache: the model answers a conversation of which it has computed
// the beginning already.
//
//   conversation  all of it from the first token, ending in the opening of the answer; at least one
//                 token, at most session.context()
//   session       holds whatever an earlier turn left. What it has in common with the conversation
//                 is kept, what departs from it is forgotten, and only the rest is computed.
//                 Afterwards it holds the conversation and as much of the answer as was computed
//   options       end_tokens must include <|im_end|>
//   on_text       as in generate_text
//
// prompt_tokens of the result is how many were computed before the answer. Throws Error if the
// conversation is empty or longer than the context; the session is then as before.
TextResult chat_turn(const Tokenizer& tokenizer, Session& session,
                     std::span<const TokenId> conversation, const TextOptions& options,
                     Random& random, const std::function<bool(std::string_view)>& on_text);

}  // namespace stagecraft
