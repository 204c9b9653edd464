#pragma once

#include <atomic>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "base/token.h"
#include "model/config.h"
#include "model/packed_model.h"
#include "model/panel_cache.h"
#include "operators/kernels/kernels.h"
#include "tensor/matrix.h"

namespace stagecraft {

// A row of activations in the forms that kernels ask for; as many rows as a pass may have.
struct PreparedRows {
  PreparedRows() = default;
  PreparedRows(std::size_t rows, std::size_t width);

  Matrix<float> f32;
  Matrix<std::uint16_t> bf16;
  Matrix<std::int8_t> q8;
  Matrix<float> scales;       // of q8, [rows, width / 32]
  Matrix<std::int32_t> sums;  // of each block of q8
};

// What a fast pass writes on its way, allocated once.
struct FastWorkspace {
  FastWorkspace(const Config& config, const Kernels& kernels, std::size_t max_rows,
                std::size_t n_threads);

  const Kernels& kernels;
  std::size_t max_rows;
  std::vector<float> inv_freq;           // [head_dim / 2]
  Matrix<float> cos, sin;                // [max_rows, head_dim / 2]: of each row's position
  Matrix<float> hidden;                  // [max_rows, dim]: the residual stream
  Matrix<float> q, k, v, attention_out;  // [max_rows, their width]
  Matrix<float> gated;                   // [max_rows, ffn_dim]
  PreparedRows prepared;                 // of a long pass, each thread making its share

  struct Scratch {           // a thread's own
    PreparedRows prepared;   // of a short pass: each makes all for itself, nobody waits
    Matrix<float> tile;      // [2 * 12, 32]: what kernels put out
    Matrix<float> queries;   // [tile rows, head_dim]
    Matrix<float> scores;    // [tile rows, 64]
    Matrix<float> weighted;  // [tile rows, head_dim, rounded up to 32], and the same again
    std::vector<float> largest, total;  // [tile rows]
  };
  std::vector<Scratch> scratch;
  std::vector<std::atomic<std::size_t>> next_task;  // of each layer's attention

  ThreadPool threads;
};

// The memory in bytes of a workspace with one thread.
double fast_workspace_bytes(const Config& config, std::size_t max_rows);

// The new tokens of one sequence in a pass, and how many of the last are to be scored.
struct SequenceTokens {
  PanelCache* cache;  // as many positions longer afterwards
  std::span<const TokenId> tokens;
  std::size_t n_logits;
};

// One pass of the model over the next tokens of some sequences: what forward() computes, with
// packed weights and the kernels of w.kernels, all threads going through the layers side by side.
//
//   batch   each sequence once; at least 1 token each, w.max_rows in all
//   logits  [sum of n_logits, vocab_size]  written: the scores after the last n_logits tokens of
//   each
//           sequence, in the order of the batch
//
// The bits of a sequence's logits do not depend on the others, on how its text is cut into passes,
// or on the number of threads. Throws Error if a token is no row of the embedding or a cache has no
// room; all caches are then as before.
void fast_forward(const Config& config, const PackedModel& model,
                  std::span<const SequenceTokens> batch, FastWorkspace& w,
                  MatrixView<float> logits);

}  // namespace stagecraft
