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
  const float* weight = nullptr;
  const float* bias = nullptr;  // of Layer
  float eps = 0.0f;
  std::size_t group = 0;        // 0: there is no norm
  std::size_t weight_step = 0;  // from a group's weights to those of the next

  explicit operator bool() const { return group != 0; }
  // Group `index` of a row, which stands at x; out may be x.
  void apply(const Kernels& k, const float* x, float* out, std::size_t index = 0) const {
    const float* const w = weight == nullptr ? nullptr : weight + index * weight_step;
    if (kind == NormStep::Kind::Rms) return k.rms_norm(x, w, group, eps, out);
    k.layer_norm(x, w, bias, group, eps, out);
  }
};

// What a plan's packed matrices take, in bytes.
struct PackedBytes {
  std::size_t all = 0;
  std::size_t per_token = 0;  // that are read for a token: of the experts, those that are chosen
  std::size_t copied_tables = 0;  // beside them: copies of which a token reads a row
};

// The weights of a model as the CPU backend reads them: matrices packed once, when the model is
// opened, into one piece of memory in the order in which a token needs them. Immutable.
// All are found by WeightId.
struct PackedWeights {
  std::vector<PanelMatrix> matrices;  // of linears; the two of a gate lie panel by panel in turn
  std::vector<std::vector<float>> vectors;  // norms and biases; taps, one row per tap
  // As stored_weight returns them, of tables only: a token needs one row of the embedding.
  std::vector<StoredTensor> stored;
  LargeMemory memory;  // what the matrices look at
  PackedBytes bytes;

  const PanelMatrix& matrix(WeightId id) const { return matrices[static_cast<std::size_t>(id)]; }
  // nullptr for kNone.
  const float* vector(WeightId id) const {
    return id == kNone ? nullptr : vectors[static_cast<std::size_t>(id)].data();
  }
  PackedNorm norm(const RowNorm& norm) const {
    const bool own =
        norm.weight != kNone && vectors[static_cast<std::size_t>(norm.weight)].size() > norm.group;
    return {norm.kind, vector(norm.weight), vector(norm.bias),
            norm.eps,  norm.group,          own ? norm.group : 0};
  }
};

// Packs the tensors of a checkpoint, which must outlive the result, on all threads. On the way the
// file's pages are released, and the checkpoint's copies dropped, but for those of tables. Throws
// as find_weights does.
PackedWeights pack_weights(const Plan& plan, const FusedPlan& fused, const Checkpoint& checkpoint,
                           ThreadPool& threads);

// The layout in which a matrix is packed that this checkpoint stores so.
WeightLayout packed_layout(const Weight& weight, const StoredTensor& stored,
                           const Checkpoint& checkpoint);

// Throws as find_weights and fuse do.
PackedBytes packed_bytes(const Plan& plan, const Checkpoint& checkpoint);

// Types of stored matrices that are packed as another: "IQ4_NL as Q8_0", and
// " (rounded)" behind it where that loses something. "" if there are none. Throws as packed_bytes.
std::string repacked_text(const Plan& plan, const Checkpoint& checkpoint);

}  // namespace stagecraft
