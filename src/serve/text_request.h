#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "generation/generate_text.h"

namespace stagecraft {

using TextId = std::uint64_t;

// A request for one text.
struct TextRequest {
  std::vector<TokenId> prompt;  // 1 to `context` tokens, each a row of the model's embedding
  TextOptions options;
  std::uint64_t seed = 0;
  std::optional<std::size_t> n_top;  // score each token, and list the n_top likeliest
};

// The log-probability of a token: the natural logarithm of the softmax of the model's logits, which
// no option of sampling has changed.
struct TokenScore {
  TokenId token = 0;
  float logprob = 0.0f;
  std::vector<std::pair<TokenId, float>> top;  // likeliest first
};

struct TextEnd {
  StopReason reason = StopReason::EndToken;
  std::size_t prompt_tokens = 0;
  std::size_t cached_tokens = 0;  // prompt tokens that were computed for another text
  std::size_t new_tokens = 0;
  std::string error;            // empty if nothing failed
  bool grammar_failed = false;  // the request's grammar is wrong; `error` does not name it
};

struct TextEvent {
  TextId text = 0;
  std::string piece;                // may be empty
  std::optional<TokenScore> score;  // of the token that was just chosen
  std::optional<TextEnd> end;       // set in the last event of a text
  std::size_t offset = 0;           // where the token of `score` begins in the text, in characters
};

}  // namespace stagecraft
