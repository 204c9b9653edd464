#pragma once

#include <span>

#include "operators/attention.h"

namespace stagecraft {

// What a model changes in its scores and in what a query sees.
struct ScoreOptions {
  float scale = 1.0f;
  float soft_cap = 0.0f;               // 0: scores are not capped
  std::span<const float> slopes = {};  // [n_heads], or empty: no ALiBi
  // [n_heads], or empty: the score of one more key that has no value; it counts only in the sum of
  // softmax (Xiao et al. 2023; gpt-oss).
  std::span<const float> sinks = {};
  // Every query sees the first `prompt` keys, also those after its own position; at most
  // keys.rows(), and 0 if there are slopes or a window.
  std::size_t prompt = 0;
};

// attention() with a scale of the model's own. If soft_cap is not 0, scores are capped (Gemma 2).
// If there are slopes, ALiBi is added (Press et al. 2021): the farther back a key is, the lower its
// score.
//   scores = soft_cap * tanh(scale * q_h . k_j / soft_cap) + slopes[h] * (j - position of q)
//
// The other shapes and the masks are those of attention(). probabilities and out must not overlap
// each other or anything that is read. Throws Error as attention() does, or if slopes or sinks have
// another size, or if there are fewer keys than `prompt`.
void scaled_attention(MatrixView<const float> q, MatrixView<const float> keys,
                      MatrixView<const float> values, const AttentionShape& shape,
                      const ScoreOptions& options, MatrixView<float> probabilities,
                      MatrixView<float> out);

}  // namespace stagecraft
