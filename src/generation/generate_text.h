#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "generation/generate.h"
#include "generation/logit_rules.h"
#include "text/tokenizer.h"

namespace stagecraft {

struct TokenGrammar;

struct TextOptions {
  GenerationOptions generation;
  // The grammar of the text; the text ends if no token may follow. Null: any text.
  std::shared_ptr<const TokenGrammar> grammar;
  LogitRules rules;
  std::vector<std::string> stops;  // each of these ends the text and is not given to on_text
};

struct TextResult {
  StopReason reason = StopReason::EndToken;  // Stopped after a stop text, too
  std::vector<TokenId> tokens;               // the new ones, those of a stop text included
  std::size_t prompt_tokens = 0;             // tokens computed before the first new token
  double prompt_seconds = 0.0;               // the time to feed the prompt
  double first_token_seconds = 0.0;  // from the call to the first token; 0 if there was none
  double generation_seconds = 0.0;   // the time after the prompt
};

// generate() with the grammar and the rules of `options`; without them, calls generate(), which a
// student may have written. options.stops is not read.
StopReason generate_tokens(Session& session, const TextOptions& options, Random& random,
                           const std::function<bool(TokenId)>& on_token);

// Continues a session with `prompt`, and gives the text of the new tokens to on_text as soon as it
// is certain: only whole characters, and nothing that may still turn out to be the beginning of a
// stop text. Special tokens have no text.
//
//   prompt   fed after the tokens of the session; may be empty only if the session holds a token
//            and its logits are up to date
//   on_text  called with each piece; false stops. While a long prompt is computed, it is called now
//            and then with an empty piece; false then stops that too
TextResult generate_text(const Tokenizer& tokenizer, Session& session,
                         std::span<const TokenId> prompt, const TextOptions& options,
                         Random& random, const std::function<bool(std::string_view)>& on_text);

}  // namespace stagecraft
