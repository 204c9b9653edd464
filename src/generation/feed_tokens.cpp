#include "generation/feed_tokens.h"

#include <algorithm>

namespace stagecraft {

bool feed_tokens(Engine& engine, Sequence& sequence, std::span<const TokenId> tokens,
                 MatrixView<float> logits, const std::function<bool()>& go_on, TokenId* likeliest) {
  const std::size_t first_scored = tokens.size() - logits.rows();
  for (std::size_t begin = 0, n_scored = 0;;) {
    const std::size_t end = std::min(begin + engine.max_rows(), tokens.size());
    const std::size_t n = end - std::clamp(first_scored, begin, end);
    const Input input{&sequence, tokens.subspan(begin, end - begin), n};
    const MatrixView<float> rows = logits.row_range(n_scored, n);
    const bool is_last = end == tokens.size();
    if (is_last && likeliest != nullptr) {
      engine.forward_greedy({&input, 1}, rows, {likeliest, 1});
    } else {
      engine.forward({&input, 1}, rows);
    }
    if (is_last) return true;
    if (go_on && !go_on()) return false;
    begin = end;
    n_scored += n;
  }
}

}  // namespace stagecraft
