#pragma once

#include <span>

#include "backends/cpu/packed_kv_cache.h"
#include "backends/sequence_state.h"
#include "base/token.h"
#include "tensor/matrix.h"

namespace stagecraft {

// The new tokens of one sequence in a pass. The last n_logits of them are scored.
struct SequenceTokens {
  PackedKvCache* cache;  // longer by these tokens after the pass
  std::span<const TokenId> tokens;
  std::size_t n_logits;
  SequenceState* state = nullptr;     // made by cpu_state if the plan has states
  MatrixView<const float> rows = {};  // see Input

  std::size_t unscored() const { return tokens.size() - n_logits; }
};

// Tokens of a pass, over all sequences.
inline std::size_t count_tokens(std::span<const SequenceTokens> batch) {
  std::size_t count = 0;
  for (const SequenceTokens& one : batch) count += one.tokens.size();
  return count;
}

}  // namespace stagecraft
