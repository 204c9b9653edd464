#pragma once

#include <vector>

#include "backends/backend.h"
#include "backends/sequence_state.h"
#include "base/thread_pool.h"
#include "checkpoint/checkpoint.h"
#include "model/kv_cache.h"
#include "model/placement.h"
#include "model/plan.h"

namespace stagecraft {

// The weights of a plan as f32, by WeightId. F32 tensors that can be used as they are stored are
// views into the checkpoint, which must outlive this; all others are converted copies.
// load_weights drops those copies of the checkpoint that nothing points to (Checkpoint::drop_copy).
struct PlanWeights {
  std::vector<MatrixView<const float>> values;  // vectors are matrices of one row
  std::vector<Matrix<float>> owned;

  MatrixView<const float> matrix(WeightId id) const { return values[static_cast<std::size_t>(id)]; }
  std::span<const float> vector(WeightId id) const {
    return id == kNone ? std::span<const float>() : matrix(id).row(0);
  }
};
PlanWeights load_weights(const Plan& plan, const Checkpoint& checkpoint);

// What a walk reads and never writes.
struct PlanProgram {
  const Plan& plan;
  const PlanWeights& weights;
};

// What outlives a pass, of one text.
struct WalkedText {
  KvCache cache;
  SequenceState state;
  Placement placement;  // of the text, if it is not empty
};

// The memory that a walk writes, and its threads.
struct WalkWorkspace {
  WalkWorkspace(const Plan& plan, std::size_t max_rows, std::size_t max_context,
                std::size_t n_threads);

  std::size_t max_rows, max_context;
  ThreadPool threads;
  std::vector<Matrix<float>> buffers;  // by BufferId, [max_rows, width]
  Matrix<float> probabilities;         // heads * max_rows * max_context numbers, shaped per step
  Matrix<float> expert[3];             // one row inside an expert: gate, up, down
};

// An empty cache for one sequence, with the shapes of the plan's caches.
KvCache make_kv_cache(const Plan& plan, std::size_t capacity);

// Runs one pass of any plan: one textbook operator per step, in order. For Llama's family, these
// are the operators that forward() calls, and the bits are the same.
//
//   tokens  [seq_len]        the next tokens of the text; 1 <= seq_len <= w.max_rows
//   text                     seq_len positions longer afterwards
//   logits  [n, vocab_size]  written: the scores after each of the last n tokens; n may be 0
//   probe                    may be empty
//
// Throws Error as forward() does.
void walk(const PlanProgram& program, std::span<const TokenId> tokens, WalkedText& text,
          WalkWorkspace& w, MatrixView<float> logits, const Probe& probe);

// Computes only the steps after the last layer, for these rows of the residual stream:
//
//   x       [n, width of the residual stream]  read; 1 <= n <= w.max_rows
//   logits  [n, vocab_size]                    written
void walk_head(const PlanProgram& program, MatrixView<const float> x, WalkWorkspace& w,
               MatrixView<float> logits);

// Throws the Error that walk would, with a workspace of these sizes.
void check_pass(const Plan& plan, std::span<const TokenId> tokens, const KvCache& cache,
                std::size_t max_rows, std::size_t max_context, MatrixView<float> logits);

}  // namespace stagecraft
