// Finds the likeliest token of each row of logits, so that the host need not read the rows.
#include "operators/cuda/operators.h"
#include "operators/cuda/warp.h"

namespace stagecraft::cuda {
namespace {

constexpr unsigned kWarps = 16;

struct Best {
  float value = -INFINITY;
  int token = -1;
};

// If the values are equal, the lower token is better, as on the CPU. Token -1 means that no token
// of the row can be chosen: it is lower than all tokens, and NaN or +infinity count as {+infinity,
// -1}.
__device__ inline Best better(Best a, Best b) {
  const bool is_a = a.value > b.value || (a.value == b.value && a.token < b.token);
  return is_a ? a : b;
}

__device__ inline Best best_of_warp(Best best) {
  for (int bit = 16; bit > 0; bit /= 2) {
    const float value = __shfl_xor_sync(kAllLanes, best.value, bit);
    const int token = __shfl_xor_sync(kAllLanes, best.token, bit);
    best = better(best, {value, token});
  }
  return best;
}

// One block per row.
__global__ void __launch_bounds__(kWarps* kWarp) likeliest_kernel(Rows logits, int* tokens) {
  __shared__ float values[kWarps];
  __shared__ int indices[kWarps];
  const float* row = logits.values + static_cast<size_t>(blockIdx.x) * logits.stride;
  Best best;
  for (unsigned i = threadIdx.x; i < logits.width; i += kWarps * kWarp) {
    const float value = row[i];
    const bool is_broken = value != value || value == INFINITY;  // NaN differs from itself
    best = better(best, is_broken ? Best{INFINITY, -1} : Best{value, static_cast<int>(i)});
  }
  best = best_of_warp(best);
  if (threadIdx.x % kWarp == 0) {
    values[threadIdx.x / kWarp] = best.value;
    indices[threadIdx.x / kWarp] = best.token;
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (unsigned warp = 1; warp < kWarps; ++warp) {
    best = better(best, {values[warp], indices[warp]});
  }
  tokens[blockIdx.x] = best.token;
}

}  // namespace

void likeliest(Rows logits, int* tokens) {
  run_kernel(likeliest_kernel, {{logits.count}, {kWarps * kWarp}}, logits, tokens);
}

}  // namespace stagecraft::cuda
