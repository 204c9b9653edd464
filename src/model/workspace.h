#pragma once

#include "base/thread_pool.h"
#include "model/config.h"
#include "tensor/matrix.h"

namespace stagecraft {

// Everything that a forward pass writes, allocated once and reused for every layer and every token;
// and the threads, which every matrix product needs.
struct Workspace {
  // max_rows: the most tokens one pass may have; max_context: the most positions, cached ones
  // included. The widths come from the config.
  Workspace(const Config& config, std::size_t max_rows, std::size_t max_context,
            std::size_t n_threads);

  std::size_t max_rows;
  std::size_t max_context;
  std::vector<float> inv_freq;  // [head_dim / 2], for rope

  Matrix<float> hidden;         // [max_rows, dim]: the residual stream
  Matrix<float> normed;         // [max_rows, dim]
  Matrix<float> q;              // [max_rows, n_heads * head_dim]
  Matrix<float> k, v;           // [max_rows, n_kv_heads * head_dim]
  Matrix<float> probabilities;  // n_heads * max_rows * max_context numbers, shaped per pass
  Matrix<float> attention_out;  // [max_rows, n_heads * head_dim]
  Matrix<float> gate, up;       // [max_rows, ffn_dim]
  Matrix<float> projected;      // [max_rows, dim]: what a block adds to the residual stream

  ThreadPool threads;

  // The scratch of attention for this many queries and positions: [n_heads * q_len, kv_len].
  MatrixView<float> probabilities_for(std::size_t n_heads, std::size_t q_len, std::size_t kv_len) {
    return {probabilities.data(), n_heads * q_len, kv_len};
  }
};

}  // namespace stagecraft
