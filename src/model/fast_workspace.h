#pragma once

#include <atomic>
#include <vector>

#include "base/thread_pool.h"
#include "model/config.h"
#include "operators/kernels/kernels.h"
#include "tensor/matrix.h"

namespace stagecraft {

// Up to so many rows each thread prepares all of them for itself, which is less than waiting.
constexpr std::size_t kFewRows = 4;

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
  FastWorkspace(const Config& config, const Kernels& table, std::size_t rows,
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
    PreparedRows queries;    // [tile rows, head_dim, rounded up to 32]: zeros behind it
    Matrix<float> scores;    // [tile rows, 64]
    Matrix<float> weighted;  // [tile rows, head_dim, rounded up to 32], and the same again
    std::vector<float> largest, total;  // [tile rows]
  };
  std::vector<Scratch> scratch;
  std::vector<std::atomic<std::size_t>> next_task;  // of each layer's attention
  std::size_t alone = 0;  // short passes that one thread is still to do, see fast_forward.cpp

  ThreadPool threads;
};

// The memory in bytes of a workspace with one thread.
double fast_workspace_bytes(const Config& config, std::size_t max_rows);

}  // namespace stagecraft
