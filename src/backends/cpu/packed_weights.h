#pragma once

#include <vector>

#include "backends/cpu/fused_plan.h"
#include "base/large_memory.h"
#include "base/thread_pool.h"
#include "checkpoint/checkpoint.h"
#include "operators/kernels/panel_matrix.h"

namespace stagecraft {

// A norm with its numbers.
struct PackedNorm {
  NormStep::Kind kind = NormStep::Kind::Rms;
  const float* weight = nullptr;  // nullptr: there is no norm
  const float* bias = nullptr;    // of Layer
  float eps = 0.0f;

  explicit operator bool() const { return weight != nullptr; }
  // One group of n numbers; out may be x.
  void apply(const Kernels& k, const float* x, std::size_t n, float* out) const {
    if (kind == NormStep::Kind::Rms) return k.rms_norm(x, weight, n, eps, out);
    k.layer_norm(x, weight, bias, n, eps, out);
  }
};

// The weights of a model as the CPU backend reads them: matrices packed once, when the model is
// opened, into one piece of memory in the order in which a token needs them. Immutable.
// All are found by WeightId.
struct PackedWeights {
  std::vector<PanelMatrix> matrices;  // of linears; the two of a gate lie panel by panel in turn
  std::vector<std::vector<float>> vectors;  // norms and biases
  // As stored_weight returns them: a token needs one row of the embedding.
  std::vector<StoredTensor> stored;
  LargeMemory memory;  // what the matrices look at

  const PanelMatrix& matrix(WeightId id) const { return matrices[static_cast<std::size_t>(id)]; }
  // nullptr for kNone.
  const float* vector(WeightId id) const {
    return id == kNone ? nullptr : vectors[static_cast<std::size_t>(id)].data();
  }
  PackedNorm norm(const RowNorm& norm) const {
    return {norm.kind, vector(norm.weight), vector(norm.bias), norm.eps};
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
