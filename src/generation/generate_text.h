#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "generation/generate.h"
#include "text/tokenizer.h"

namespace stagecraft {

struct TokenGrammar;

struct TextOptions {
  GenerationOptions generation;
  // What the text may be; it ends where nothing may follow. Null: anything.
  std::shared_ptr<const TokenGrammar> grammar;
  std::vector<std::string> stops;  // any of these in the text ends it, and is not handed out
};

struct TextResult {
  StopReason reason = StopReason::EndToken;
  std::vector<TokenId> tokens;       // the new ones
  std::size_t prompt_tokens = 0;     // computed before the first new token
  double prompt_seconds = 0.0;       // feeding the prompt
  double first_token_seconds = 0.0;  // from the call to the first token; 0 if there was none
  double generation_seconds = 0.0;   // all that came after the prompt
};

// Continues a session with `prompt` and hands out the text of the new tokens as soon as it is sure:
// whole characters only, and nothing that may still turn out to be the beginning of a stop text.
// Special tokens have no text.
//
//   prompt   fed after what the session holds; may be empty only if the session holds something
//            and its logits are fresh
//   on_text  called with each piece; false stops. While a long prompt is computed it is also called
//            with an empty piece now and then, so that it can stop that too
TextResult generate_text(const Tokenizer& tokenizer, Session& session,
                         std::span<const TokenId> prompt, const TextOptions& options,
                         Random& random, const std::function<bool(std::string_view)>& on_text);

}  // namespace stagecraft
