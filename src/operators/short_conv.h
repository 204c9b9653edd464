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
//   state  [n_taps - 1, width]  read and written: the rows before x (zeros at the start of a
//                               text); afterwards the last n_taps - 1 rows of the text so far
//   y      [seq_len, width]     written; must not overlap the others
//
// Each sum begins with the bias and goes from the first tap to the last, so the bits do not depend
// on how a text is cut into passes. Throws Error if shapes disagree.
void short_conv(MatrixView<const float> x, MatrixView<const float> taps,
                std::span<const float> bias, MatrixView<float> state, MatrixView<float> y);

}  // namespace stagecraft
