#include "operators/scaled_attention.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "operators/check.h"
#include "operators/check_attention.h"
#include "operators/matmul_transb.h"
#include "operators/soft_cap.h"
#include "operators/softmax.h"

namespace stagecraft {
namespace {

void softmax_with_sink(std::span<float> x, float sink) {
  const float largest = std::max(sink, *std::ranges::max_element(x));
  float sum = std::exp(sink - largest);
  for (float& value : x) sum += value = std::exp(value - largest);
  for (float& value : x) value /= sum;
}

}  // namespace

void scaled_attention(MatrixView<const float> q, MatrixView<const float> keys,
                      MatrixView<const float> values, const AttentionShape& shape,
                      const ScoreOptions& options, MatrixView<float> probabilities,
                      MatrixView<float> out) {
  const auto& [scale, cap, slopes, sinks, prompt] = options;
  check_attention(q, keys, values, shape, probabilities, out);
  if (!slopes.empty()) check_size("scaled_attention", "slopes", shape.n_heads, slopes.size());
  if (!sinks.empty()) check_size("scaled_attention", "sinks", shape.n_heads, sinks.size());
  if (prompt > keys.rows()) {
    throw Error("scaled_attention: prompt: expected at most {} (the number of keys), found {}",
                keys.rows(), prompt);
  }
  const std::size_t q_len = q.rows();
  const std::size_t past = keys.rows() - q_len;
  const std::size_t group = shape.n_heads / shape.n_kv_heads;
  for (std::size_t head = 0; head < shape.n_heads; ++head) {
    const auto k_h = keys.col_range(head / group * shape.head_dim, shape.head_dim);
    const auto v_h = values.col_range(head / group * shape.head_dim, shape.head_dim);
    const auto out_h = out.col_range(head * shape.head_dim, shape.head_dim);
    const auto scores = probabilities.row_range(head * q_len, q_len);
    matmul_transb(scale, q.col_range(head * shape.head_dim, shape.head_dim), k_h, 0.0f, scores);
    for (std::size_t i = 0; i < q_len; ++i) {
      // A position sees itself, all before it, and the first `prompt` positions.
      const std::size_t last = std::max(past + i + 1, prompt);
      const std::size_t first = shape.window != 0 && last > shape.window ? last - shape.window : 0;
      const std::span<float> p = scores.row(i);
      const std::span<float> visible = p.subspan(first, last - first);
      if (cap != 0.0f) soft_cap(visible, cap);
      if (!slopes.empty()) {
        for (std::size_t j = first; j < last; ++j) {
          p[j] -= slopes[head] * static_cast<float>(last - 1 - j);
        }
      }
      if (sinks.empty()) {
        softmax(visible, visible);
      } else {
        softmax_with_sink(visible, sinks[head]);
      }
      std::ranges::fill(p.first(first), 0.0f);
      std::ranges::fill(p.subspan(last), 0.0f);

      const std::span<float> result = out_h.row(i);
      std::ranges::fill(result, 0.0f);
      for (std::size_t j = first; j < last; ++j) {
        for (std::size_t d = 0; d < result.size(); ++d) result[d] += p[j] * v_h(j, d);
      }
    }
  }
}

}  // namespace stagecraft
