#include "backends/pass_check.h"

#include "base/error.h"
#include "operators/check.h"

namespace stagecraft {

PassCheck::PassCheck(const Plan& plan, std::size_t max_rows)
    : plan_(plan), max_rows_(max_rows), row_input_(row_input(plan)) {}

void PassCheck::text(std::span<const TokenId> tokens, std::size_t n_logits,
                     MatrixView<const float> rows) {
  if (tokens.empty()) throw Error("forward: expected 1 to {} tokens, found 0", max_rows_);
  if (n_logits > tokens.size()) {
    throw Error("forward: expected at most {} tokens to score, found {}", tokens.size(), n_logits);
  }
  if (row_input_ != kNone) {
    check_shape("forward", "rows", tokens.size(), plan_.buffer(row_input_).width, rows);
  }
  n_tokens_ += tokens.size();
  n_scored_ += n_logits;
}

std::size_t PassCheck::end(MatrixView<float> logits) const {
  if (n_tokens_ == 0 || n_tokens_ > max_rows_) {
    throw Error("forward: expected 1 to {} tokens, found {}", max_rows_, n_tokens_);
  }
  check_shape("forward", "logits", n_scored_, plan_.buffer(plan_.logits).width, logits);
  return n_tokens_;
}

}  // namespace stagecraft
