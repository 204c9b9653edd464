#pragma once

#include <span>

#include "backends/cpu/sequence_tokens.h"
#include "backends/cpu/thread_slice.h"
#include "operators/gated_delta.h"

namespace stagecraft {

// One thread's work in the steps of a pass that read and write the state of a sequence: short
// convolutions and the gated delta rule.
class PackedStates {
 public:
  PackedStates(std::span<const SequenceTokens> batch, const Plan& plan,
               const PackedWeights& weights, CpuWorkspace& w, const ThreadSlice& slice)
      : batch_(batch), plan_(plan), weights_(weights), w_(w), slice_(slice), k_(w.kernels) {}

  // For all rows of the pass. Each ends with a barrier.
  void run(const ShortConvStep& step) const;
  void run(const DeltaStep& step, std::size_t n_rows) const;

 private:
  void convolve(const ShortConvStep& step, Range columns, MatrixView<const float> in,
                MatrixView<float> state, MatrixView<float> out) const;
  DeltaShape delta_shape(const DeltaStep& step) const;
  void prepare_delta(const DeltaStep& step, std::size_t n_rows) const;
  void delta_panel(const DeltaStep& step, const DeltaShape& shape, const SequenceTokens& one,
                   std::size_t row, std::size_t head, std::size_t panel) const;

  std::span<const SequenceTokens> batch_;
  const Plan& plan_;
  const PackedWeights& weights_;
  CpuWorkspace& w_;
  const ThreadSlice& slice_;
  const Kernels& k_;
};

}  // namespace stagecraft
