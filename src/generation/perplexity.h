#pragma once

#include <functional>
#include <span>
#include <vector>

#include "backends/engine.h"
#include "base/token.h"

namespace stagecraft {

// How a text longer than a model's context is cut, as in Hugging Face's "Perplexity of fixed-length
// models": windows of `context` tokens, each `stride` further on than the one before, each scoring
// the tokens that no window before it has. So every token but the first has between
// context - stride and context - 1 tokens before it (less at the beginning of the text).
struct Windows {
  std::size_t context = 512;
  std::size_t stride = 256;  // 1 to context - 1
};

// The surprisal of each token of a text: -ln p(token | the tokens before it), in nats.
//
//   ids       [n]  n >= 2; ids[0] is only read. Each a row of the model's embedding
//   progress  where set, called now and then with how many tokens are scored; false stops, and what
//             has been scored is returned
//   returns   [n - 1]: that of ids[1], ids[2], ...
//
// Perplexity is exp of their mean; bits per byte is their sum over ln 2 and the bytes they spell.
// The sums over the vocabulary are in f64. Throws Error if a window or an id is out of range, or if
// the model's logits are no finite numbers.
std::vector<double> surprisals(Engine& engine, std::span<const TokenId> ids, const Windows& windows,
                               const std::function<bool(std::size_t scored)>& progress = {});

}  // namespace stagecraft
