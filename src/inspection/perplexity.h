#pragma once

#include <functional>
#include <span>
#include <vector>

#include "backends/engine.h"
#include "base/token.h"

namespace stagecraft {

// How a text longer than the context of a model is cut into windows, as in Hugging Face's
// "Perplexity of fixed-length models": each window has `context` tokens and begins `stride` tokens
// after the previous one. It scores the tokens that no earlier window has scored. So every token
// but the first has between context - stride and context - 1 tokens before it (fewer at the
// beginning of the text).
struct Windows {
  std::size_t context = 512;
  std::size_t stride = 256;  // 1 to context - 1
};

// The surprisal of each token of a text: -ln p(token | the tokens before it), in nats.
//
//   ids       [n]  n >= 2; ids[0] is read, but not scored. Each is a row of the model's embedding
//   progress  if set, called now and then with the number of scored tokens; if it returns false,
//             the surprisals so far are returned
//   returns   [n - 1]: the surprisals of ids[1], ids[2], ...
//
// Perplexity is exp of their mean. Bits per byte is their sum divided by ln 2 and by the number of
// bytes of the tokens. Sums over the vocabulary are computed in f64. Throws Error if a window or an
// id is out of range, if the plan has a PromptRule, or if the logits are not finite.
std::vector<double> surprisals(Engine& engine, std::span<const TokenId> ids, const Windows& windows,
                               const std::function<bool(std::size_t scored)>& progress = {});

}  // namespace stagecraft
