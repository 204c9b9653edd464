#pragma once

#include <span>
#include <vector>

#include "backends/engine.h"
#include "base/token.h"
#include "generation/sampler.h"
#include "tensor/matrix.h"

namespace stagecraft {

// Which head of which layer to watch.
struct HeadIndex {
  std::size_t layer = 0;
  std::size_t head = 0;
};

// What a model predicts for a text, position by position.
struct Peek {
  Matrix<float> next;       // [shown, vocab_size]: the probabilities of what follows each of the
                            // last `shown` positions
  Matrix<float> attention;  // [seq_len, seq_len]: how much each position (row) looks at each
                            // (column), for the one head that was asked for; else empty
};

// One pass over the whole text.
//
//   ids    [seq_len]  at least one
//   shown  1 to seq_len
//   head   the attention head to keep, or nullptr; must exist in the model. Only the
//          textbook backend has attention probabilities
//
// Throws Error if the model computes a logit that is NaN or +infinity, or an attention weight that
// is no finite number.
Peek peek(Engine& engine, std::span<const TokenId> ids, std::size_t shown, const HeadIndex* head);

// The `count` likeliest tokens, likeliest first; of equals the lower id first. No probability is
// NaN: then there is no such order.
std::vector<TokenProbability> likeliest(std::span<const float> probabilities, std::size_t count);

// How many tokens are likelier than this one by the same rule: 0 for the likeliest.
std::size_t rank_of(std::span<const float> probabilities, TokenId token);

}  // namespace stagecraft
