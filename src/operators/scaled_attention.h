#pragma once

#include "operators/attention.h"

namespace stagecraft {

// attention() with a scale of the model's own and, where soft_cap is not 0, capped scores (Gemma
// 2); where there are slopes, ALiBi is added (Press et al. 2021): keys far back count less.
//   scores = soft_cap * tanh(scale * q_h . k_j / soft_cap) + slopes[h] * (j - position of q)
//
//   slopes  [n_heads], or empty  read
//   sinks   [n_heads], or empty  read: the score of one more key without a value, which counts in
//                                the sum of softmax (Xiao et al. 2023; gpt-oss)
//   prompt  every query sees at least so many first keys; at most keys.rows(), and 0 with slopes
//
// The other shapes, the masks and the errors are those of attention(). probabilities and out must
// not overlap each other or anything that is read.
void scaled_attention(MatrixView<const float> q, MatrixView<const float> keys,
                      MatrixView<const float> values, const AttentionShape& shape, float scale,
                      float soft_cap, std::span<const float> slopes, std::span<const float> sinks,
                      std::size_t prompt, MatrixView<float> probabilities, MatrixView<float> out);

}  // namespace stagecraft
