#include "operators/cuda/halves.h"
#include "operators/cuda/warp.h"

namespace stagecraft::cuda {
namespace {

constexpr unsigned kMostThreads = 512;

// One block per group of a row. Each thread adds every blockDim-th number; then the block adds up
// the sums of its threads. Neighbouring threads read neighbouring numbers. A thread writes only
// numbers that no other thread reads, so out may be in.
__global__ void __launch_bounds__(kMostThreads)
    norm_kernel(Rows out, Rows in, NormOptions options, HalfRows halves) {
  __shared__ float sums[kWarp], squares[kWarp], maxima[kWarp];
  const unsigned group = blockIdx.x, n = options.group;
  const float* from = in.values + static_cast<size_t>(blockIdx.y) * in.stride + group * n;
  float* to = out.values + static_cast<size_t>(blockIdx.y) * out.stride + group * n;

  float mean = 0.0f;
  if (options.centered) {
    float sum = 0.0f;
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x) sum += from[i];
    mean = block_sum(sum, sums) / static_cast<float>(n);
  }
  float square = 0.0f;
  for (unsigned i = threadIdx.x; i < n; i += blockDim.x) {
    square = fmaf(from[i] - mean, from[i] - mean, square);
  }
  square = block_sum(square, squares) / static_cast<float>(n);
  const float scale = 1.0f / sqrtf(square + options.eps);

  const unsigned first = options.own_weights ? group * n : 0;
  float largest = 0.0f;
  for (unsigned i = threadIdx.x; i < n; i += blockDim.x) {
    float value = (from[i] - mean) * scale;
    if (options.weight != nullptr) value *= options.weight[first + i];
    if (options.bias != nullptr) value += options.bias[i];
    to[i] = value;
    largest = fmaxf(largest, fabsf(value));
  }
  if (halves.values != nullptr) round_row(halves, blockIdx.y, to, largest, maxima);
}

}  // namespace

// The number of threads depends only on the width of a group, because it determines the order of
// the sums.
void norm(Rows out, Rows in, NormOptions options, HalfRows halves) {
  const unsigned threads =
      padded(options.group) < kMostThreads ? padded(options.group) : kMostThreads;
  run_kernel(norm_kernel, {{in.width / options.group, in.count}, {threads}}, out, in, options,
             halves);
}

}  // namespace stagecraft::cuda
