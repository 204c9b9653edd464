#include "generation/feed_tokens.h"

#include <algorithm>

namespace stagecraft {

bool feed_tokens(Engine& engine, Sequence& sequence, std::span<const TokenId> tokens,
                 MatrixView<float> logits, const std::function<bool()>& go_on, TokenId* likeliest) {
  while (true) {
    const auto piece = tokens.first(std::min(tokens.size(), engine.max_rows()));
    tokens = tokens.subspan(piece.size());
    const Input input{&sequence, piece, tokens.empty() ? 1u : 0u};
    const MatrixView<float> rows = logits.row_range(0, input.n_logits);
    if (tokens.empty() && likeliest != nullptr) {
      engine.forward_greedy({&input, 1}, rows, {likeliest, 1});
    } else {
      engine.forward({&input, 1}, rows);
    }
    if (tokens.empty()) return true;
    if (go_on && !go_on()) return false;
  }
}

}  // namespace stagecraft
