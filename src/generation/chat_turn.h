#pragma once

#include "generation/generate_text.h"

namespace stagecraft {

// One turn of a chat: the model answers a conversation whose beginning may already be in the cache.
//
//   conversation  all tokens from the first one to the opening of the answer; at least one token,
//                 at most session.context()
//   session       holds the tokens of earlier turns. The common beginning of these tokens and the
//                 conversation is kept, except the last token of the conversation. All other
//                 tokens are removed, and only the rest of the conversation is computed.
//                 Afterwards it holds the conversation and the computed part of the answer
//   options       options.generation.end_tokens must include <|im_end|>; the caller sees to it
//   on_text       as in generate_text
//
// prompt_tokens of the result: how many tokens were computed before the answer. Throws Error if the
// conversation is empty or longer than the context; then the session is unchanged.
TextResult chat_turn(const Tokenizer& tokenizer, Session& session,
                     std::span<const TokenId> conversation, const TextOptions& options,
                     Random& random, const std::function<bool(std::string_view)>& on_text);

}  // namespace stagecraft
