#pragma once

#include <span>

#include "backends/engine.h"
#include "base/token.h"
#include "tensor/matrix.h"

namespace stagecraft {

// A head of a layer.
struct HeadIndex {
  std::size_t layer = 0;
  std::size_t head = 0;
};

// The predictions of a model for a text, position by position.
struct Peek {
  Matrix<float> next;       // [shown, vocab_size]: the probabilities of the next token after each
                            // of the last `shown` positions
  Matrix<float> attention;  // [seq_len, seq_len]: how much each position (row) attends to each
                            // position (column), for the requested head; empty without one
};

// Computes the whole text.
//
//   ids    [seq_len]  at least one
//   shown  1 to seq_len
//   head   the attention head to keep, or nullptr; must exist in the model. Only the
//          textbook backend has attention probabilities
//
// Throws Error if the model computes a logit that is NaN or +infinity, or an attention weight that
// is not finite; and if the result needs more memory than this process may use.
Peek peek(Engine& engine, std::span<const TokenId> ids, std::size_t shown, const HeadIndex* head);

}  // namespace stagecraft
