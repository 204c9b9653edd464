#pragma once

#include "operators/attention.h"

namespace stagecraft {

// Throws Error unless the shapes of the arguments of attention() agree.
void check_attention(MatrixView<const float> q, MatrixView<const float> keys,
                     MatrixView<const float> values, const AttentionShape& shape,
                     MatrixView<float> probabilities, MatrixView<float> out);

}  // namespace stagecraft
