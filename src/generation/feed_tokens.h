#pragma once

#include <functional>
#include <span>

#include "backends/engine.h"

namespace stagecraft {

// Computes the next tokens of a sequence, in passes of at most engine.max_rows() tokens.
//
//   tokens     at least one
//   logits     [n, vocab_size]  written: the logits after the last n tokens; 1 <= n <= their number
//   go_on      if not empty, called between two passes; false ends the function
//   likeliest  if not null, the last pass is Backend::forward_greedy; then n is 1
//
// Returns whether all tokens have been computed. Throws Error as Backend::forward does. The passes
// before the end or the error stay in the sequence.
bool feed_tokens(Engine& engine, Sequence& sequence, std::span<const TokenId> tokens,
                 MatrixView<float> logits, const std::function<bool()>& go_on = {},
                 TokenId* likeliest = nullptr);

}  // namespace stagecraft
