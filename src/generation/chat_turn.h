#pragma once

#include "generation/generate_text.h"

namespace stagecraft {

// One turn of a chat: the model answers a conversation whose beginning is already in the cache.
//
//   conversation  all of it from the first token, ending in the opening of the answer; at least one
//                 token, at most session.context()
//   session       holds the tokens of earlier turns. Those that it has in common with the beginning
//                 of the conversation are kept, but never the last token of the conversation; all
//                 others are removed, and only the rest of the conversation is computed.
//                 Afterwards it holds the conversation and the computed part of the answer
//   options       end_tokens must include <|im_end|>
//   on_text       as in generate_text
//
// prompt_tokens of the result: how many tokens were computed before the answer. Throws Error if the
// conversation is empty or longer than the context; then the session is unchanged.
TextResult chat_turn(const Tokenizer& tokenizer, Session& session,
                     std::span<const TokenId> conversation, const TextOptions& options,
                     Random& random, const std::function<bool(std::string_view)>& on_text);

}  // namespace stagecraft
