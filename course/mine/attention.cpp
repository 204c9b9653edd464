// attention() of a --mine program with stage 11; it replaces operators/attention.cpp. Each query is
// one launch, which reads the cache up to the query's own position.
#include "operators/attention.h"

#include <algorithm>
#include <cmath>

#include "course/mine/on_gpu.h"
#include "operators/check.h"
#include "operators/on_gpu.h"
#include "operators/softmax.h"

namespace stagecraft {
namespace {

// The kernels do not store their probabilities, but trace and peek show them. So this computes them
// again.
void show_probabilities(std::span<const float> q, MatrixView<const float> keys, float scale,
                        std::span<float> probabilities) {
  std::ranges::fill(probabilities, 0.0f);
  for (std::size_t j = 0; j < keys.rows(); ++j) {
    float product = 0.0f;
    for (std::size_t i = 0; i < q.size(); ++i) product += q[i] * keys(j, i);
    probabilities[j] = product * scale;
  }
  softmax(probabilities.first(keys.rows()), probabilities.first(keys.rows()));
}

}  // namespace

void attention(MatrixView<const float> q, MatrixView<const float> keys,
               MatrixView<const float> values, const AttentionShape& shape,
               MatrixView<float> probabilities, MatrixView<float> out) {
  check_shape("attention", "q", q.rows(), shape.n_heads * shape.head_dim, q);
  check_shape("attention", "out", q.rows(), q.cols(), out);
  const float scale = 1.0f / std::sqrt(static_cast<float>(shape.head_dim));
  for (std::size_t t = 0; t < q.rows(); ++t) {
    const std::size_t end = keys.rows() - q.rows() + t + 1;
    const std::size_t first = shape.window != 0 && end > shape.window ? end - shape.window : 0;
    const Compact seen_keys(keys.row_range(first, end - first));
    const Compact seen_values(values.row_range(first, end - first));
    on_gpu({q.row(t), seen_keys.numbers(), seen_values.numbers()}, out.row(t),
           [&](std::span<const float* const> in, float* to) {
             attention_on_gpu(in[0], in[1], in[2], to, static_cast<int>(shape.n_heads),
                              static_cast<int>(shape.n_kv_heads), static_cast<int>(shape.head_dim),
                              static_cast<int>(end - first), scale);
           });
    for (std::size_t h = 0; h < shape.n_heads; ++h) {
      const std::size_t kv_head = h / (shape.n_heads / shape.n_kv_heads);
      const auto row = probabilities.row(h * q.rows() + t);
      std::ranges::fill(row, 0.0f);
      show_probabilities(
          q.row(t).subspan(h * shape.head_dim, shape.head_dim),
          keys.row_range(first, end - first).col_range(kv_head * shape.head_dim, shape.head_dim),
          scale, row.subspan(first));
    }
  }
}

}  // namespace stagecraft
