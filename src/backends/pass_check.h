#pragma once

#include <span>

#include "model/plan.h"
#include "tensor/matrix.h"

namespace stagecraft {

// What a backend asks of the texts of a pass if it computes the rows of all together, before
// anything changes. Each function throws Error that says what was expected and what was found.
class PassCheck {
 public:
  PassCheck(const Plan& plan, std::size_t max_rows);

  // Of each text: its new tokens, how many of them are scored, and the rows that it brings where
  // the plan begins with rows (brought_rows).
  void text(std::span<const TokenId> tokens, std::size_t n_logits, MatrixView<const float> rows);

  // After the last text: the number of all tokens, and the logits [scored tokens, their width].
  // Returns the number of tokens.
  std::size_t end(MatrixView<float> logits) const;

 private:
  const Plan& plan_;
  const std::size_t max_rows_;
  const BufferId brought_;
  std::size_t n_tokens_ = 0, n_scored_ = 0;
};

}  // namespace stagecraft
