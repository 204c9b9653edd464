#pragma once

#include <span>
#include <vector>

#include "backends/cuda/cuda_bytes.h"
#include "backends/cuda/device_memory.h"
#include "backends/cuda/device_weights.h"
#include "base/token.h"
#include "tensor/matrix.h"

namespace stagecraft::cuda {

// All activations of a pass and the tables that describe its rows, in the GPU's memory.
// cuda_bytes() counts these bytes.
class PassWorkspace {
 public:
  PassWorkspace(const Plan& plan, std::size_t max_rows);

  std::size_t max_rows() const { return max_rows_; }
  // The first `rows` rows of a buffer. selected(): the second buffer of SelectStep::x, for the rows
  // that are scored.
  Rows rows(BufferId id, std::size_t rows) const;
  Rows selected(std::size_t rows) const;

 private:
  friend class Pass;
  Rows make_rows(std::size_t count, std::size_t width);

  const std::size_t max_rows_;
  std::vector<DeviceMemory> memory_;
  std::vector<Rows> buffers_;  // by BufferId, each of max_rows rows
  Rows selected_;
  BufferId selects_ = kNone;  // SelectStep::x
  DeviceMemory tables_;       // kRowTables tables of ints, see Pass::upload_tables
  // Activations inside the experts: one row per token and expert that it goes to.
  Rows gate_, up_, down_;
  DeviceMemory halves_, powers_, sums_;  // HalfRows of the widest input of a linear step
  DeviceMemory chosen_;
  DeviceMemory likeliest_;  // one token per scored row
};

// Tables that depend only on the plan. Kernels need them beside weights and activations.
struct PlanTables {
  PlanTables(const Plan& plan, CacheType type);
  std::vector<DeviceMemory> frequencies;  // by FrequenciesId
  std::vector<DeviceMemory> slopes;       // by step; empty if it is no AttentionStep with slopes
  std::vector<bool> adds_result;          // by step: whether this LinearStep also does the AddStep
                                          // behind it, see sum_after()
  std::vector<unsigned> cache_begin;      // by CacheId: Cache::before
  std::size_t position_bytes = 0;         // bytes per position in all caches together
  std::vector<unsigned> state_begin;      // by StateId: State::before
  std::size_t state_numbers = 0;          // in all states of a sequence together
  CacheType cache_type;                   // of all caches
};

// What a pass reads and never writes.
struct CudaProgram {
  const Plan& plan;
  const DeviceWeights& weights;
  const PlanTables& tables;
};

// The rows of a pass, sequence after sequence.
struct PassRows {
  std::vector<int> ids, positions, seen, sequences;   // see Tokens
  std::vector<int> answer_positions, text_positions;  // see Placement
  std::vector<int> scored;                            // indices of the rows that are scored
  std::vector<MatrixView<const float>> given;         // one per sequence: Input::rows
  std::vector<int> tables;                            // room for all tables, one after the other

  void clear();  // keeps the memory
};

// Runs one pass and waits for it. A step of the plan is one kernel launch or a few. Some steps
// share a launch: several products of the same rows, a product and the AddStep behind it, the
// rotations of q and k and the StoreStep behind them. Returns whether the pass repeated a record.
//
//   logits     [rows.scored, vocab_size]  written, in the host's memory
//   likeliest  [rows.scored]           written, or empty; see Backend::forward_greedy
bool run_pass(const CudaProgram& program, PassWorkspace& workspace, Recorder& recorder,
              const SequenceSlot* slots, PassRows& rows, MatrixView<float> logits,
              std::span<TokenId> likeliest);

}  // namespace stagecraft::cuda
