#pragma once

#include <span>

#include "tensor/matrix.h"

namespace stagecraft {

// A causal convolution of each column by itself, over the last n_taps rows
// (torch.nn.functional.conv1d with as many groups as columns):
//   y[t][c] = bias[c] + sum over j of taps[c][j] * x[t - n_taps + 1 + j][c]
//
//   x      [seq_len, width]     read
//   taps   [width, n_taps]      read; the last tap belongs to row t itself
//   bias   [width]              read; empty: all 0
//   state  [n_taps - 1, width]  the rows before x, 0 where there are none; afterwards the last
//                               n_taps - 1 rows of the text
//   y      [seq_len, width]     written; must not overlap x
//
// The sums begin with the bias and go from the first tap to the last, so the bits do not depend on
// how a text is cut. Throws Error if shapes disagree.
void short_conv(MatrixView<const float> x, MatrixView<const float> taps,
                std::span<const float> bias, MatrixView<float> state, MatrixView<float> y);

}  // namespace stagecraft
