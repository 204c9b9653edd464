#pragma once

#include "operators/cuda/operators.h"

namespace stagecraft::cuda {

// Whether tensor_attention() can read this cache.
bool has_tensor_attention(const Cache& cache);

// Like attention(), for a cache with has_tensor_attention(). q and the exponentials of softmax are
// rounded to f16.
void tensor_attention(Rows out, Rows q, Cache cache, Tokens tokens, AttentionOptions options);

}  // namespace stagecraft::cuda
