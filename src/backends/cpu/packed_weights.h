#pragma once

#include <vector>

#include "backends/cpu/fused_plan.h"
#include "base/large_memory.h"
#include "base/thread_pool.h"
#include "checkpoint/checkpoint.h"
#include "operators/kernels/panel_matrix.h"

namespace stagecraft {

// The weights of a model as the CPU backend reads them: matrices packed once, when the model is
// opened, into one piece of memory in the order in which a token needs them. Immutable.
// All are found by WeightId.
struct PackedWeights {
  std::vector<PanelMatrix> matrices;  // of linears; the two of a gate lie panel by panel in turn
  std::vector<std::vector<float>> vectors;  // norms and biases
  std::vector<StoredTensor> stored;  // as in the file: a token needs one row of the embedding
  LargeMemory memory;                // what the matrices look at

  const PanelMatrix& matrix(WeightId id) const { return matrices[static_cast<std::size_t>(id)]; }
  // nullptr for kNone.
  const float* vector(WeightId id) const {
    return id == kNone ? nullptr : vectors[static_cast<std::size_t>(id)].data();
  }
};

// Packs the tensors of a checkpoint, which must outlive the result, on all threads; the file's
// pages are released on the way. Throws as find_weights does.
PackedWeights pack_weights(const Plan& plan, const FusedPlan& fused, const Checkpoint& checkpoint,
                           ThreadPool& threads);

// The layout in which a matrix of this checkpoint is packed.
WeightLayout packed_layout(const StoredTensor& matrix, const Checkpoint& checkpoint);

// The memory in bytes that the packed matrices take. Throws as find_weights and fuse do.
std::size_t packed_bytes(const Plan& plan, const Checkpoint& checkpoint);

}  // namespace stagecraft
