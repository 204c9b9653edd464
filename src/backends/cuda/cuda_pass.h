#pragma once

#include <span>
#include <vector>

#include "backends/cuda/device_memory.h"
#include "backends/cuda/device_weights.h"
#include "base/token.h"
#include "tensor/matrix.h"

namespace stagecraft::cuda {

// What one row of a pass has in the arrays of PassWorkspace, in numbers.
struct RowSizes {
  std::size_t buffers = 0;   // in all buffers of the plan
  std::size_t selected = 0;  // in the second place of SelectStep::x
  std::size_t input = 0;     // of the widest linear step: also as halves, see HalfRows
  std::size_t chosen = 0;    // experts
  std::size_t inside = 0;    // the experts, in `gate`; as many in `up`
  std::size_t down = 0;      // results of experts, before they are added up
};
RowSizes sizes_of_row(const Plan& plan);
inline constexpr std::size_t kRowTables = 7;  // of ints; see PassRows

// All activations of a pass and the tables that describe its rows, in the GPU's memory.
// cuda_bytes() counts it.
class PassWorkspace {
 public:
  PassWorkspace(const Plan& plan, std::size_t max_rows);

  std::size_t max_rows() const { return max_rows_; }
  // The first `rows` rows of a buffer. Those of SelectStep::x have a second place, for the rows
  // that are scored.
  Rows rows(BufferId id, std::size_t rows) const;
  Rows selected(std::size_t rows) const;

 private:
  friend class Pass;
  Rows make_rows(std::size_t count, std::size_t width);

  const std::size_t max_rows_;
  std::vector<DeviceMemory> memory_;
  std::vector<Rows> buffers_;  // by BufferId, of max_rows
  Rows selected_;
  BufferId selects_ = kNone;
  DeviceMemory tables_;  // of ints: see Pass
  // Inside the experts of a step, a row per expert that a token goes to.
  Rows gate_, up_, down_;
  DeviceMemory halves_, powers_, sums_;  // HalfRows of the widest input of a linear step
  DeviceMemory chosen_;
  DeviceMemory likeliest_;  // a token per scored row
};

// What a kernel needs beside weights and activations: tables that the plan fixes.
struct PlanTables {
  PlanTables(const Plan& plan, CacheType cache_type);
  std::vector<DeviceMemory> frequencies;  // by FrequenciesId
  std::vector<DeviceMemory> slopes;       // by step; of the AttentionSteps that have some
  std::vector<bool> adds_result;          // by step: whether this LinearStep writes the sum of the
                                          // AddStep after it, see sum_after()
  std::vector<unsigned> cache_begin;      // by CacheId: bytes per position in the caches before
  std::size_t position_bytes = 0;         // per position in all caches
  std::vector<unsigned> state_begin;      // by StateId: numbers in the states before
  std::size_t state_numbers = 0;          // in all states of a sequence
};

// The rows of a pass, sequence after sequence.
struct PassRows {
  std::vector<int> ids, positions, seen, sequences;   // see Tokens
  std::vector<int> answer_positions, text_positions;  // see Placement
  std::vector<int> scored;                            // indices of rows
  std::vector<MatrixView<const float>> brought;       // per sequence: see Input::rows

  void clear();  // and keeps the memory
};

// A pass of at most this many rows is recorded once there is a second one with the same numbers of
// rows: texts that are continued, a token each.
inline constexpr std::size_t kMostRecordedRows = 64;

// One pass: a step of the plan is one kernel launch, or a few. Several products of the same rows, a
// product and its sum, or both rotations are one launch. Returns whether it was the repetition of a
// record.
//
//   logits     [rows.scored, vocab_size]  written, in the host's memory
//   likeliest  [rows.scored]  written, or empty; see Backend::forward_greedy
bool run_pass(const Plan& plan, const DeviceWeights& weights, const PlanTables& tables,
              PassWorkspace& workspace, Recorder& recorder, const SequenceSlot* slots,
              CacheType cache_type, const PassRows& rows, MatrixView<float> logits,
              std::span<TokenId> likeliest);

}  // namespace stagecraft::cuda
