#pragma once

#include <span>

#include "backends/cpu/cpu_workspace.h"
#include "backends/cpu/packed_weights.h"
#include "backends/cpu/sequence_tokens.h"

namespace stagecraft {

// What a pass reads and never writes.
struct CpuProgram {
  const Plan& plan;
  const FusedPlan& fused;
  const PackedWeights& weights;
};

// The states of one sequence in the layout of this backend.
SequenceState cpu_state(const Plan& plan);
// Its size in bytes.
double cpu_state_bytes(const Plan& plan);

// Runs one pass of a model over the next tokens of some sequences, with packed weights and the
// kernels of w.kernels. All threads run all steps together; each computes its slice of a step.
//
//   batch   each sequence once; at least 1 token each, at most w.max_rows in total
//   logits  [sum of n_logits, vocab_size]  written: the scores after the last n_logits tokens
//           of each sequence, in the order of the batch
//
// The bits of a sequence's logits do not depend on the others, on how its text is cut into passes,
// or on the number of threads. Throws Error if a token is not in the vocabulary, a cache has no
// room, or there is no memory for one; then no sequence has changed.
void cpu_pass(const CpuProgram& program, std::span<const SequenceTokens> batch, CpuWorkspace& w,
              MatrixView<float> logits);

}  // namespace stagecraft
