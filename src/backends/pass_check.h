#pragma once

#include <span>

#include "model/plan.h"
#include "tensor/matrix.h"

namespace stagecraft {

// Checks the texts of a pass before anything changes: all texts if the backend computes their rows
// together, else each text by itself. Each function throws an Error that says what was expected and
// what was found.
class PassCheck {
 public:
  PassCheck(const Plan& plan, std::size_t max_rows);

  // For each text: its new tokens, how many of them are scored, and its rows if the plan reads rows
  // (row_input).
  void text(std::span<const TokenId> tokens, std::size_t n_logits, MatrixView<const float> rows);

  // After the last text: checks the number of all tokens, and the shape of the logits, [scored
  // tokens, width]. Returns the number of tokens.
  std::size_t end(MatrixView<float> logits) const;

 private:
  const Plan& plan_;
  const std::size_t max_rows_;
  const BufferId row_input_;
  std::size_t n_tokens_ = 0, n_scored_ = 0;
};

}  // namespace stagecraft
