#pragma once

#include <span>

#include "tensor/matrix.h"

namespace stagecraft {

// RMSNorm (Zhang and Sennrich 2019, eq. 4), with Llama's eps:
//   y[t][i] = weight[i] * x[t][i] / sqrt(mean_j(x[t][j]^2) + eps)
//
//   x       [seq_len, dim]   read; seq_len may be 0
//   weight  [dim]            read
//   y       [seq_len, dim]   written; may be x itself, else must not overlap it
//   eps     added to the mean square, inside the root ("rms_norm_eps" in config.json)
//
// A row's bits do not depend on seq_len. May be called from several threads at once. The caller
// passes shapes that agree. The reference version checks this and throws Error (operators/check.h).
// Your version need not check it.
void rms_norm(MatrixView<const float> x, std::span<const float> weight, float eps,
              MatrixView<float> y);

}  // namespace stagecraft
