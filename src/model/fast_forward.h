#pragma once

#include <span>

#include "base/token.h"
#include "model/config.h"
#include "model/fast_workspace.h"
#include "model/packed_model.h"
#include "model/panel_cache.h"
#include "tensor/matrix.h"

namespace stagecraft {

// The new tokens of one sequence in a pass, and how many of the last are to be scored.
struct SequenceTokens {
  PanelCache* cache;  // as many positions longer afterwards
  std::span<const TokenId> tokens;
  std::size_t n_logits;

  std::size_t unscored() const { return tokens.size() - n_logits; }
};

// Tokens of a pass, over all sequences.
inline std::size_t count_tokens(std::span<const SequenceTokens> batch) {
  std::size_t count = 0;
  for (const SequenceTokens& one : batch) count += one.tokens.size();
  return count;
}

// One pass of the model over the next tokens of some sequences: what forward() computes, with
// packed weights and the kernels of w.kernels, all threads going through the layers side by side.
//
//   batch   each sequence once; at least 1 token each, w.max_rows in all
//   logits  [sum of n_logits, vocab_size]  written: the scores after the last n_logits tokens of
//   each
//           sequence, in the order of the batch
//
// The bits of a sequence's logits do not depend on the others, on how its text is cut into passes,
// or on the number of threads. Throws Error if a token is no row of the embedding or a cache has no
// room; all caches are then as before.
void fast_forward(const Config& config, const PackedModel& model,
                  std::span<const SequenceTokens> batch, FastWorkspace& w,
                  MatrixView<float> logits);

}  // namespace stagecraft
