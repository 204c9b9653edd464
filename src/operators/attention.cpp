// This gives away stage 6: it is our answer to stages/06-self-attention/attention.cpp.
#include "operators/attention.h"

#include <algorithm>
#include <cmath>

#include "operators/check_attention.h"
#include "operators/matmul_transb.h"
#include "operators/softmax.h"

namespace stagecraft {
namespace {

// Turns the scores of one query into probabilities: softmax over [first, last), 0 elsewhere.
void masked_softmax(std::span<float> scores, std::size_t first, std::size_t last) {
  std::fill(scores.begin(), scores.begin() + static_cast<std::ptrdiff_t>(first), 0.0f);
  std::fill(scores.begin() + static_cast<std::ptrdiff_t>(last), scores.end(), 0.0f);
  const std::span<float> visible = scores.subspan(first, last - first);
  softmax(visible, visible);
}

}  // namespace

void attention(MatrixView<const float> q, MatrixView<const float> keys,
               MatrixView<const float> values, const AttentionShape& shape,
               MatrixView<float> probabilities, MatrixView<float> out) {
  check_attention(q, keys, values, shape, probabilities, out);
  const std::size_t q_len = q.rows();
  const std::size_t past = keys.rows() - q_len;
  const std::size_t group = shape.n_heads / shape.n_kv_heads;
  const float scale = 1.0f / std::sqrt(static_cast<float>(shape.head_dim));

  for (std::size_t head = 0; head < shape.n_heads; ++head) {
    const std::size_t kv_head = head / group;
    const auto q_h = q.col_range(head * shape.head_dim, shape.head_dim);
    const auto k_h = keys.col_range(kv_head * shape.head_dim, shape.head_dim);
    const auto v_h = values.col_range(kv_head * shape.head_dim, shape.head_dim);
    const auto out_h = out.col_range(head * shape.head_dim, shape.head_dim);
    const auto scores = probabilities.row_range(head * q_len, q_len);

    matmul_transb(scale, q_h, k_h, 0.0f, scores);
    for (std::size_t i = 0; i < q_len; ++i) {
      const std::size_t last = past + i + 1;  // a position sees itself and all before it
      const std::size_t first = shape.window != 0 && last > shape.window ? last - shape.window : 0;
      const std::span<float> p = scores.row(i);
      masked_softmax(p, first, last);

      const std::span<float> result = out_h.row(i);
      std::fill(result.begin(), result.end(), 0.0f);
      for (std::size_t j = first; j < last; ++j) {
        const std::span<const float> v = v_h.row(j);
        for (std::size_t d = 0; d < result.size(); ++d) result[d] += p[j] * v[d];
      }
    }
  }
}

}  // namespace stagecraft
