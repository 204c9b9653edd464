#pragma once

#include <span>

#include "tensor/matrix.h"

namespace stagecraft {

// LayerNorm (Ba et al. 2016, eq. 4), with PyTorch's eps:
//   y[t][i] = weight[i] * (x[t][i] - mean) / sqrt(variance + eps) + bias[i]
//   mean = mean_j(x[t][j]),  variance = mean_j((x[t][j] - mean)^2)
//
//   x             [seq_len, dim]   read; seq_len may be 0
//   weight, bias  [dim]            read
//   y             [seq_len, dim]   written; may be x itself, else must not overlap it
//   eps           added to the variance, inside the root
//
// A row's bits do not depend on seq_len. Throws Error if shapes disagree.
void layer_norm(MatrixView<const float> x, std::span<const float> weight,
                std::span<const float> bias, float eps, MatrixView<float> y);

}  // namespace stagecraft
