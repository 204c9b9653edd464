#pragma once

#include "operators/attention.h"

namespace stagecraft {

// attention() with a scale of the model's own and, where soft_cap is not 0, capped scores (Gemma
// 2):
//   scores = soft_cap * tanh(scale * q_h . k_j / soft_cap)
// Shapes, masks and errors are those of attention().
void scaled_attention(MatrixView<const float> q, MatrixView<const float> keys,
                      MatrixView<const float> values, const AttentionShape& shape, float scale,
                      float soft_cap, MatrixView<float> probabilities, MatrixView<float> out);

}  // namespace stagecraft
