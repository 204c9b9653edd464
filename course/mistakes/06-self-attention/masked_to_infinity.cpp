// Right: masked scores become -infinity, then one softmax over the whole row.
#include "operators/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "operators/softmax.h"

namespace stagecraft {

void attention(MatrixView<const float> q, MatrixView<const float> keys,
               MatrixView<const float> values, const AttentionShape& s,
               MatrixView<float> probabilities, MatrixView<float> out) {
  const std::size_t past = keys.rows() - q.rows();
  const std::size_t group = s.n_heads / s.n_kv_heads;
  const float scale = 1.0f / std::sqrt(static_cast<float>(s.head_dim));
  for (std::size_t head = 0; head < s.n_heads; ++head) {
    const std::size_t kv = (head / group) * s.head_dim;
    const std::size_t own = head * s.head_dim;
    for (std::size_t i = 0; i < q.rows(); ++i) {
      const std::span<float> p = probabilities.row(head * q.rows() + i);
      for (std::size_t j = 0; j < keys.rows(); ++j) {
        float sum = 0.0f;
        for (std::size_t d = 0; d < s.head_dim; ++d) sum += q(i, own + d) * keys(j, kv + d);
        p[j] = scale * sum;
      }
      [[maybe_unused]] const std::size_t last = past + i + 1;
      [[maybe_unused]] const std::size_t first =
          s.window != 0 && last > s.window ? last - s.window : 0;
      for (std::size_t j = 0; j < p.size(); ++j) {
        if (j < first || j >= last) p[j] = -std::numeric_limits<float>::infinity();
      }
      softmax(p, p);
      const std::span<float> result = out.row(i).subspan(own, s.head_dim);
      std::ranges::fill(result, 0.0f);
      for (std::size_t j = 0; j < keys.rows(); ++j) {
        for (std::size_t d = 0; d < s.head_dim; ++d) result[d] += p[j] * values(j, kv + d);
      }
    }
  }
}

}  // namespace stagecraft
