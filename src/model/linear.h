#pragma once

#include "base/thread_pool.h"
#include "model/parameters.h"

namespace stagecraft {

// y = x * weight^T + bias: one matmul_transb. The threads divide the outputs among themselves.
//
//   x  [seq_len, inputs]   read
//   y  [seq_len, outputs]  written; must not overlap x
//
// The bits of y do not depend on the number of threads. A program may link other implementations:
// see linear_ways.h. Throws Error if shapes disagree.
void linear(const Linear& layer, MatrixView<const float> x, MatrixView<float> y,
            ThreadPool& threads);

}  // namespace stagecraft
