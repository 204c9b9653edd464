#pragma once

#include "backends/cpu/packed_attention.h"

namespace stagecraft {

// What a pass reads and never writes.
struct CpuProgram {
  const Plan& plan;
  const FusedPlan& fused;
  const PackedWeights& weights;
};

// The states of one sequence as this backend keeps them.
SequenceState cpu_state(const Plan& plan);
double cpu_state_bytes(const Plan& plan);

// One pass of a model over the next tokens of some sequences: the steps of the plan, with packed
// weights and the kernels of w.kernels, all threads walking through the steps side by side.
//
//   batch   each sequence once; at least 1 token each, at most w.max_rows over all
//   logits  [sum of n_logits, vocab_size]  written: the scores after the last n_logits tokens
//           of each sequence, in the order of the batch
//
// The bits of a sequence's logits do not depend on the others, on how its text is cut into passes,
// or on the number of threads. Throws Error if a token is no row of the embedding or a cache has no
// room; all caches are then as before.
void cpu_pass(const CpuProgram& program, std::span<const SequenceTokens> batch, CpuWorkspace& w,
              MatrixView<float> logits);

}  // namespace stagecraft
