#pragma once

#include <vector>

#include "base/thread_pool.h"
#include "model/config.h"
#include "tensor/matrix.h"

namespace stagecraft {

// The buffers of a forward pass, allocated once and reused for every layer and every token, and the
// threads for matrix products.
struct Workspace {
  // max_rows: the most tokens of one pass; max_context: the most positions, those in the cache
  // included. The widths come from the config.
  Workspace(const Config& config, std::size_t max_rows, std::size_t max_context,
            std::size_t n_threads);

  std::size_t max_rows;
  std::size_t max_context;
  std::vector<float> inv_freq;  // frequencies of RoPE

  Matrix<float> hidden;         // [max_rows, dim]: the residual stream
  Matrix<float> normed;         // [max_rows, dim]
  Matrix<float> q;              // [max_rows, n_heads * head_dim]
  Matrix<float> k, v;           // [max_rows, n_kv_heads * head_dim]
  Matrix<float> probabilities;  // n_heads * max_rows * max_context numbers, shaped per pass
  Matrix<float> attention_out;  // [max_rows, n_heads * head_dim]
  Matrix<float> gate, up;       // [max_rows, ffn_dim]
  Matrix<float> projected;      // the result that a block adds to hidden

  ThreadPool threads;

  // The attention probabilities of q_len queries over kv_len positions: [n_heads * q_len, kv_len].
  MatrixView<float> probabilities_for(std::size_t n_heads, std::size_t q_len, std::size_t kv_len) {
    return {probabilities.data(), n_heads * q_len, kv_len};
  }
};

}  // namespace stagecraft
