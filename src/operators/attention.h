#pragma once

#include <cstddef>

#include "tensor/matrix.h"

namespace stagecraft {

struct AttentionShape {
  std::size_t n_heads = 0;     // query heads
  std::size_t n_kv_heads = 0;  // key and value heads; divides n_heads
  std::size_t head_dim = 0;
  std::size_t window = 0;  // a query sees this many positions, its own included; 0: no limit
};

// Causal scaled dot-product attention (Vaswani et al. 2017, eq. 1) with grouped queries (Ainslie et
// al. 2023): n_heads / n_kv_heads neighbouring query heads share one key and value head. The
// queries are the last q_len of kv_len positions, so row i stands at position kv_len - q_len + i.
//   scores        = q_h . k_j / sqrt(head_dim)    for each key j that row i may see
//   probabilities = softmax(scores), 0 for every other j
//   out_h         = sum_j(probabilities[j] * v_j)
//
//   q              [q_len, n_heads * head_dim]      read; q_len may be 0
//   keys, values   [kv_len, n_kv_heads * head_dim]  read; kv_len >= q_len
//   probabilities  [n_heads * q_len, kv_len]        written: row h * q_len + i is head h, query i
//   out            [q_len, n_heads * head_dim]      written; must not overlap the others
//
// The bits of a row of `out` do not depend on the other queries. May be called from several threads
// at once. The caller passes shapes that agree. The reference version checks this and throws Error
// (operators/check_attention.h). Your version need not check it.
void attention(MatrixView<const float> q, MatrixView<const float> keys,
               MatrixView<const float> values, const AttentionShape& shape,
               MatrixView<float> probabilities, MatrixView<float> out);

}  // namespace stagecraft
