#pragma once

#include <string>
#include <vector>

#include "backends/cpu/fused_plan.h"
#include "base/large_memory.h"
#include "base/thread_pool.h"
#include "checkpoint/checkpoint.h"
#include "operators/kernels/panel_matrix.h"

namespace stagecraft {

// A norm with its weights.
struct PackedNorm {
  NormStep::Kind kind = NormStep::Kind::Rms;
  const float* weight = nullptr;
  const float* bias = nullptr;  // of Layer
  float eps = 0.0f;
  std::size_t group = 0;        // 0: there is no norm
  std::size_t weight_step = 0;  // from the weights of a group to those of the next; 0: shared

  explicit operator bool() const { return group != 0; }
  // Norms group `index` of a row. x: the numbers of the group; out may be x.
  void apply(const Kernels& k, const float* x, float* out, std::size_t index = 0) const {
    const float* const w = weight == nullptr ? nullptr : weight + index * weight_step;
    if (kind == NormStep::Kind::Rms) return k.rms_norm(x, w, group, eps, out);
    k.layer_norm(x, w, bias, group, eps, out);
  }
};

// The sizes of the packed matrices of a plan, in bytes.
struct PackedBytes {
  std::size_t all = 0;
  std::size_t per_token = 0;      // read per token: of the experts, only those that are chosen
  std::size_t copied_tables = 0;  // not in `all`: copied tables, of which a token reads a row
  // The types of matrices that are packed as another type, such as "Q8_K as F32"; "": none.
  std::string repacked = {};
};

// The weights of a model as the CPU backend reads them: matrices are packed once, when the model is
// opened, into one piece of memory, in the order in which a token needs them. Immutable. The
// vectors are indexed by WeightId.
struct PackedWeights {
  std::vector<PanelMatrix> matrices;  // of linears; the panels of a gate and its `up` alternate
  std::vector<std::vector<float>> vectors;  // norms and biases; taps, one row per tap
  // Results of stored_weight, only for tables: a token needs one row of the embedding.
  std::vector<StoredTensor> stored;
  LargeMemory memory;  // the matrices are views into it
  PackedBytes bytes;

  const PanelMatrix& matrix(WeightId id) const { return matrices[static_cast<std::size_t>(id)]; }
  // nullptr for kNone.
  const float* vector(WeightId id) const {
    return id == kNone ? nullptr : vectors[static_cast<std::size_t>(id)].data();
  }
  const StoredTensor& table(WeightId id) const { return stored[static_cast<std::size_t>(id)]; }
  PackedNorm norm(const RowNorm& norm) const {
    const bool own =
        norm.weight != kNone && vectors[static_cast<std::size_t>(norm.weight)].size() > norm.group;
    return {norm.kind, vector(norm.weight), vector(norm.bias),
            norm.eps,  norm.group,          own ? norm.group : 0};
  }
};

// Packs the tensors of a checkpoint, which must outlive the result, with all threads. Releases the
// file's pages, and drops the checkpoint's copies except those of tables. Throws std::bad_alloc,
// and Error if find_weights does.
PackedWeights pack_weights(const Plan& plan, const FusedPlan& fused, const Checkpoint& checkpoint,
                           ThreadPool& threads);

// The layout in which a matrix of a model is packed. large: whether the model is (large_model.h).
WeightLayout packed_layout(const Weight& weight, const StoredTensor& stored, bool large);

// Throws Error if find_weights or fuse does.
PackedBytes packed_bytes(const Plan& plan, const Checkpoint& checkpoint);

}  // namespace stagecraft
