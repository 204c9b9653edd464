#pragma once

#include "backends/cpu/thread_slice.h"

namespace stagecraft {

// One thread's work in the experts of a pass. Each expert multiplies all rows that were routed to
// it as one matrix, so its weights are read once for all of them.
class PackedExperts {
 public:
  PackedExperts(const PackedWeights& weights, CpuWorkspace& w, const ThreadSlice& slice)
      : weights_(weights), w_(w), slice_(slice), k_(w.kernels) {}

  // For the first n_rows rows of the step's buffers. Ends with a barrier.
  void run(const FusedExperts& fused, std::size_t n_rows) const;

 private:
  const ExpertSlots& group_by_expert(MatrixView<const float> routing_weights,
                                     std::size_t most) const;
  void multiply_gate_and_up(const ExpertsStep& step, const ExpertSlots& slots,
                            MatrixView<const float> in, MatrixView<float> hidden) const;
  void multiply_down(const ExpertsStep& step, const ExpertSlots& slots,
                     MatrixView<const float> hidden, MatrixView<float> out, bool add) const;
  MatrixView<float> buffer(BufferId id, std::size_t n_rows) const {
    return w_.buffer(id).row_range(0, n_rows);
  }

  const PackedWeights& weights_;
  CpuWorkspace& w_;
  const ThreadSlice& slice_;
  const Kernels& k_;
};

}  // namespace stagecraft
