#pragma once

#include "operators/attention.h"

namespace stagecraft {

// attention() with a scale of the model's own and, where soft_cap is not 0, capped scores (Gemma
// 2); where there are slopes, ALiBi is added (Press et al. 2021): keys far back count less.
//   scores = soft_cap * tanh(scale * q_h . k_j / soft_cap) + slopes[h] * (j - position of q)
// slopes: [n_heads], or empty. Shapes, masks and errors are those of attention().
void scaled_attention(MatrixView<const float> q, MatrixView<const float> keys,
                      MatrixView<const float> values, const AttentionShape& shape, float scale,
                      float soft_cap, std::span<const float> slopes,
                      MatrixView<float> probabilities, MatrixView<float> out);

}  // namespace stagecraft
